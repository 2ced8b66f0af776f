"""Energies, their gradients and their minimization, compared with autograd, enumeration and each other."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from psilearn.metrics import f1_score  # noqa: E402
from psilearn_lab.baselines.energies import (  # noqa: E402
    GlobalTerm,
    LabelSpace,
    NumberSpace,
    ValueNetwork,
    compute_energy,
    evaluate_term,
    hinge_loss,
    infer,
    relaxed_f1,
)

L = 4


@pytest.fixture
def term() -> GlobalTerm:
    torch.manual_seed(0)
    term = GlobalTerm(L, 3)
    with torch.no_grad():
        term.outer.weight.mul_(20)  # large enough to change the prediction
    return term


@pytest.fixture
def scores() -> "torch.Tensor":
    return torch.randn(6, L, generator=torch.Generator().manual_seed(1))


def spaces() -> list:
    return [LabelSpace(), NumberSpace(torch.full((L,), -1.5), torch.full((L,), 2.0))]


def test_the_gradient_of_the_global_term(term: GlobalTerm) -> None:
    y = torch.rand(5, L, requires_grad=True)
    (gradient,) = torch.autograd.grad(term(y).sum(), y)
    assert torch.allclose(term.gradient(y), gradient, atol=1e-6)


@pytest.mark.parametrize("space", spaces(), ids=["labels", "numbers"])
def test_the_gradient_of_the_margin(space: object) -> None:
    truth = (torch.rand(5, L) > 0.5).float()
    y = torch.rand(5, L, requires_grad=True)
    (gradient,) = torch.autograd.grad(space.margin(y, truth).sum(), y)
    assert torch.allclose(space.margin_gradient(y.detach(), truth), gradient, atol=1e-6)


@pytest.mark.parametrize("space", spaces(), ids=["labels", "numbers"])
def test_inference_descends_to_a_minimum_of_the_energy(term: GlobalTerm, scores: "torch.Tensor", space: object) -> None:
    curve: list[float] = []
    y = infer(scores, term, space, 400, 0.1, curve=curve)
    assert np.all(np.diff(curve) < 1e-5)
    y.requires_grad_(True)
    (gradient,) = torch.autograd.grad(compute_energy(scores, y, term, space).sum(), y)
    inside = torch.ones_like(y, dtype=torch.bool)
    if isinstance(space, NumberSpace):  # at an edge the energy may fall outwards
        inside = (y > space.low + 1e-4) & (y < space.high - 1e-4)
    assert gradient[inside].abs().max() < 5e-3
    for _ in range(20):
        other = (
            space.to_output(y.detach() + 0.05 * torch.randn_like(y))
            if isinstance(space, NumberSpace)
            else (y.detach() + 0.05 * torch.randn_like(y)).clamp(1e-3, 1 - 1e-3)
        )
        assert torch.all(
            compute_energy(scores, other, term, space) > compute_energy(scores, y, term, space).detach() - 1e-4
        )


def test_without_a_global_term_the_network_alone_predicts(scores: "torch.Tensor") -> None:
    zero = GlobalTerm(L, 3)
    with torch.no_grad():
        zero.outer.weight.zero_()
    assert torch.allclose(infer(scores, zero, LabelSpace(), 10, 0.5), torch.sigmoid(scores), atol=1e-6)
    space = spaces()[1]
    assert torch.allclose(infer(scores, zero, space, 10, 0.5), space.to_output(scores), atol=1e-6)


@pytest.mark.parametrize("space", spaces(), ids=["labels", "numbers"])
def test_loss_augmented_inference_maximises_the_violation_of_the_margin(
    term: GlobalTerm, scores: "torch.Tensor", space: object
) -> None:
    truth = (torch.rand(6, L, generator=torch.Generator().manual_seed(2)) > 0.5).float()
    worst = infer(scores, term, space, 300, 0.1, truth)
    plain = infer(scores, term, space, 300, 0.1)
    with torch.no_grad():
        losses = [hinge_loss(scores, truth, y, term, space) for y in (worst, plain, truth)]
    assert torch.all(losses[0] >= losses[1] - 1e-4)
    assert torch.all(losses[0] >= losses[2] - 1e-4)
    assert torch.all(losses[2] == 0)
    if isinstance(space, LabelSpace):
        for corner in itertools.product((0.0, 1.0), repeat=L):
            y = torch.tensor([corner]).expand(6, L)
            with torch.no_grad():
                assert torch.all(losses[0] >= hinge_loss(scores, truth, y, term, space) - 1e-3)


def test_labels_0_and_1_have_no_entropy() -> None:
    corners = torch.tensor(list(itertools.product((0.0, 1.0), repeat=L)))
    assert LabelSpace().regularizer(corners).abs().max() < 1e-4
    assert torch.allclose(LabelSpace().regularizer(torch.full((1, L), 0.5)), torch.tensor([-L * np.log(2.0)]).float())
    assert torch.equal(LabelSpace().margin(corners[:1], corners), corners.sum(dim=1))


def test_relaxed_f1_is_f1_at_the_corners() -> None:
    corners = np.array(list(itertools.product((0, 1), repeat=3)))
    for truth in corners:
        repeated = np.tile(truth, (8, 1))
        ours = relaxed_f1(torch.tensor(corners).float(), torch.tensor(repeated).float())
        assert np.allclose(ours.numpy(), f1_score(repeated, corners).values)
    soft = relaxed_f1(torch.tensor([[0.5, 0.25]]), torch.tensor([[1.0, 0.0]]))
    assert float(soft) == pytest.approx(2 * 0.5 / (0.5 + 1.25))


def test_ascent_increases_the_value_and_a_perturbation_increases_its_error() -> None:
    torch.manual_seed(0)
    value = ValueNetwork(torch.nn.Linear(2, L), L, 3)
    scores = value.network(torch.randn(5, 2)).detach()
    values = [torch.sigmoid(value.logit(scores, value.ascend(scores, steps, 0.3))) for steps in (0, 5, 50)]
    assert torch.all(values[0] <= values[1] + 1e-6)
    assert torch.all(values[1] <= values[2] + 1e-6)

    start = torch.full((5, L), 0.5, requires_grad=True)
    quality = torch.rand(5)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(value.logit(scores, start), quality, reduction="sum")
    (gradient,) = torch.autograd.grad(loss, start)
    moved = value.perturb(scores, start.detach(), quality, 0.01)
    assert torch.allclose(moved, (start.detach() + 0.01 * gradient).clamp(0, 1), atol=1e-6)


def test_the_global_term_of_dense_and_csr_rows(term: GlobalTerm) -> None:
    from scipy import sparse

    from psilearn_lab.neural.perceptron import Perceptron

    rows = (np.random.default_rng(0).random((9, L)) > 0.5).astype(float)
    center, unit = np.full(L, 0.3), 2.0
    network = Perceptron(torch.nn.Sequential(), None, center, unit, torch.device("cpu"))
    direct = term(torch.tensor((rows - center) / unit).float()).detach().numpy()
    assert np.allclose(evaluate_term(term, network, rows), direct, atol=1e-5)
    assert np.allclose(evaluate_term(term, network, sparse.csr_matrix(rows)), direct, atol=1e-5)
    with_length = evaluate_term(term, network, rows, lambda y: y.sum(dim=1))
    assert np.allclose(with_length, direct + ((rows - center) / unit).sum(axis=1), atol=1e-5)
