"""Structured prediction energy networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psilearn._backend import row_blocks
from psilearn._linalg import Array
from psilearn._utils import validation
from psilearn._utils.samples import Samples
from psilearn.baselines.baseline import validation_error
from psilearn.baselines.networks import Network
from psilearn.neural.device import seeded

if TYPE_CHECKING:
    import torch

    from psilearn.neural.epochs import History
    from psilearn.neural.perceptron import Perceptron

BLOCK = 4096  # outputs that are inferred together


@dataclass(frozen=True)
class Epochs:
    """How long the two phases take; None where validation is to find out."""

    energy_hidden: int
    features: int | None = None
    energy: int | None = None


class SPEN(Network):
    """Structured prediction energy network: the prediction is the minimum of a learned energy.

    E(x, y) = −⟨BF(x) + b, y⟩ + ⟨w, softplus(Cy + c)⟩ + R(y) over relaxed outputs, labels in [0, 1] or numbers within
    the range of those that were seen; R is minus the entropy, or ½|y|². First the feature network F is trained alone,
    as :class:`NN`; then F is kept, and B, b, C, c and w are trained on the structured hinge loss

        max(0, Δ(ŷ, y) − E(x, ŷ) + E(x, y)),   ŷ of low E(x, ŷ) − Δ(ŷ, y)  (loss-augmented inference),

    with Δ the number of wrong labels, or ¼|ŷ − y|². Inference is entropic mirror descent for labels and projected
    gradient descent for numbers, from what the feature network predicts. Held-out examples stop both phases, by F1 or
    squared error; then all examples are learned from for as long. Candidates are judged by their energy.

    Parameters
    ----------
    hidden : widths of the hidden layers of F
    energy_hidden : int, or list of them
        the number of softplus units; of a list, the best on held-out examples is taken, and each value trains F anew.
    dropout, learning_rate, weight_decay, epochs, patience, batch_size, standardize :
        of the feature network, as in :class:`NN`.
    energy_learning_rate : float
        of the second phase (Adam).
    energy_epochs : int
        of the second phase, at the most; ``patience`` ends it, too.
    steps : int
        of inference.
    inference_rate : float in (0, 1]
        the length of a step.
    device, validation_fraction, random_state, verbose :
        as in :class:`NN`.

    Attributes
    ----------
    pretraining_ : History
        of the feature network: training loss and validation error of each epoch.
    history_ : History
        of the second phase: hinge loss on training examples, validation error.
    validation_hinge_ : list of float
        the hinge loss on held-out examples, of each epoch.
    inference_curve_ : list of float
        the mean of E(x, ŷ) − Δ(ŷ, y) over held-out examples before each step of inference and after the last.
    energy_hidden_ : int
        chosen.
    threshold_, validation_error_ : float

    References
    ----------
    Belanger and McCallum, *Structured Prediction Energy Networks*, ICML 2016. The entropy inside the energy, and the
    quadratic term for numbers, are ours.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.baselines import SPEN
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> Y = np.column_stack([X[:, 0] > 0, X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    >>> model = SPEN(hidden=(20, 20), energy_hidden=4, dropout=0.0, learning_rate=0.01).fit(X, Y)
    >>> model.predict([[1.0, 1.0], [-1.0, 1.0]])
    array([[1, 1, 1],
           [0, 0, 1]])
    """

    _tuned = "energy_hidden"

    def __init__(
        self,
        hidden: Sequence[int] = (150, 150),
        energy_hidden: int | Sequence[int] = 16,
        dropout: float = 0.5,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        epochs: int = 200,
        patience: int = 15,
        batch_size: int = 64,
        standardize: bool = True,
        energy_learning_rate: float = 1e-3,
        energy_epochs: int = 100,
        steps: int = 20,
        inference_rate: float = 0.3,
        device: Any = None,
        validation_fraction: float = 0.1,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.energy_hidden = energy_hidden
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.standardize = standardize
        self.energy_learning_rate = energy_learning_rate
        self.energy_epochs = energy_epochs
        self.steps = steps
        self.inference_rate = inference_rate
        self.device = device
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for value in self._values():
            validation.check_count(value, "energy_hidden")
        validation.check_positive(self.energy_learning_rate, "energy_learning_rate")
        validation.check_count(self.energy_epochs, "energy_epochs")
        validation.check_count(self.steps, "steps")
        if validation.check_positive(self.inference_rate, "inference_rate") > 1:
            raise ValueError(f"inference_rate must be at most 1; got {self.inference_rate!r}.")

    def _settings(self, value: int) -> Epochs:
        return Epochs(value)

    def _learn(self, X: Samples, Y: Array, settings: Epochs, held_out: tuple[Samples, Array] | None) -> Epochs:
        from psilearn.neural.perceptron import fit_perceptron

        options = self._options(settings.features)
        with seeded(self.random_state, options.device) as rng:
            error = validation_error(self.binary_)
            what = "feature network, validated" if held_out else "feature network"
            network, pretraining = fit_perceptron(X, Y, options, rng, what, self.binary_, held_out, error)
            history = self._learn_energy(network, X, Y, settings, held_out, rng)
        if held_out:
            self.pretraining_, self.history_ = pretraining, history
        return Epochs(settings.energy_hidden, pretraining.best_epoch, history.best_epoch)

    def _learn_energy(
        self,
        network: Perceptron,
        X: Samples,
        Y: Array,
        settings: Epochs,
        held_out: tuple[Samples, Array] | None,
        rng: np.random.Generator,
    ) -> History:
        """Train the last layer and the global term on the hinge loss, with features that stay as they are."""
        import torch

        from psilearn.baselines.energies import GlobalTerm, LabelSpace, NumberSpace, hinge, infer
        from psilearn.neural.batches import Rows
        from psilearn.neural.epochs import Schedule, train
        from psilearn.neural.perceptron import outputs

        device = network.device
        width = network.last.in_features
        self.network_, self.term_ = network, GlobalTerm(Y.shape[1], settings.energy_hidden).to(device)
        if self.binary_:
            self.space_: Any = LabelSpace()
        else:
            bounds = network.targets(np.array([Y.min(axis=0), Y.max(axis=0)]))
            self.space_ = NumberSpace(*bounds[:])
        term, last, space = self.term_, network.last, self.space_
        inputs, truth = Rows(outputs(network.features, network.rows(X), width), device), network.targets(Y)

        def loss(rows: Any) -> torch.Tensor:
            scores, y = last(inputs[rows]), truth[rows]
            return hinge(scores, y, infer(scores, term, space, self.steps, self.inference_rate, y), term, space).mean()

        validate = None
        if held_out:
            X_held, Y_held = held_out
            held_inputs = Rows(outputs(network.features, network.rows(X_held), width), device)
            held_truth = network.targets(Y_held)
            self.validation_hinge_: list[float] = []
            error = validation_error(self.binary_)

            def validate() -> float:
                scores, y = last(held_inputs[:]), held_truth[:]
                worst = infer(scores, term, space, self.steps, self.inference_rate, y)
                self.validation_hinge_.append(float(hinge(scores, y, worst, term, space).mean()))
                return error(Y_held, self._infer(scores))

        both = torch.nn.ModuleList([last, term])
        optimizer = torch.optim.Adam(both.parameters(), self.energy_learning_rate)
        epochs = self.energy_epochs if settings.energy is None else settings.energy
        schedule = Schedule(epochs, self.batch_size, self.patience)
        remedy = "Lower energy_learning_rate."
        history = train(both, optimizer, loss, len(Y), schedule, rng, "energy", validate, remedy=remedy)
        if held_out:
            self.inference_curve_: list[float] = []
            scores = last(held_inputs[:])
            infer(scores, term, space, self.steps, self.inference_rate, held_truth[:], self.inference_curve_)
        return history

    def _infer(self, scores: torch.Tensor) -> Array:
        from psilearn.baselines.energies import infer

        relaxed = infer(scores, self.term_, self.space_, self.steps, self.inference_rate)
        return self.network_.centre + self.network_.unit * relaxed.cpu().numpy().astype(np.float64)

    def _soft(self, X: Samples) -> Array:
        import torch

        rows = self.network_.rows(X)
        with torch.no_grad():
            found = [self._infer(self.network_.network(rows[part])) for part in row_blocks(len(rows), 1, BLOCK)]
        return np.concatenate(found)

    def _linear_costs(self, X: Samples) -> Array:
        return -self.network_.unit * self.network_.scores(X)  # u²E, as a function of y = centre + u·(what E is told)

    def _candidate_costs(self, C: Samples) -> Array:
        from psilearn.baselines.energies import values_of

        extra = None if self.binary_ else self.space_.neutral  # labels that are certain have no entropy
        return self.network_.unit**2 * values_of(self.term_, self.network_, C, extra)
