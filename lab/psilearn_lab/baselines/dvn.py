"""Deep value networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from psilearn._backend import iter_blocks
from psilearn._linalg import Array
from psilearn.utils import Index, Pairs, RandomStateLike, Samples, validation
from psilearn_lab.baselines.networks import INFERENCE_ROWS, Network
from psilearn_lab.neural.device import DeviceLike, fixed_seed
from psilearn_lab.neural.parameters import check_width

if TYPE_CHECKING:
    import torch

    from psilearn_lab.neural.batches import TensorRows

RATE_DROPS = (0.4, 0.8)  # parts of the epochs after which the learning rate is divided by ten


class DVN(Network):
    """Deep value network: a network learns the quality of outputs, and prediction maximizes it.

    The value v(x, y) = σ(⟨s(x), y⟩ + ⟨w, softplus(Cy + c)⟩ + v₀), with a perceptron s, is trained by cross-entropy to
    equal the F1 of y, relaxed to [0, 1] as 2Σmin(y, y*)/(Σmin(y, y*) + Σmax(y, y*)). The outputs to learn from are
    generated for each batch: by inference as in prediction or, half of the time, adversarially, by one step up the
    error of v from the true or from the empty label set. Prediction makes ``steps`` steps up v from the empty label
    set, inside [0, 1].

    The learning rate is divided by ten after 40 % and after 80 % of the epochs. The number of epochs is found on
    held-out examples, by F1; then the network is trained on all examples for this number of epochs. Candidates are
    compared by their value.

    Parameters
    ----------
    hidden : sequence of int, default=(150,)
        The widths of the hidden layers of s.
    energy_hidden : int or sequence of int, default=16
        The number of softplus units; the best value of a sequence is chosen on held-out examples.
    dropout : float, default=0.0
        The probability in [0, 1) with which a hidden unit is dropped during training.
    learning_rate : float, default=1e-3
        The first learning rate of AdamW.
    weight_decay : float, default=1e-2
        The weight decay of AdamW.
    epochs : int, default=60
        The largest number of epochs.
    patience : int, default=20
        The number of epochs without improvement on held-out examples after which training stops.
    batch_size : int, default=32
        The number of examples per step.
    standardize : bool, default=True
        Whether the columns of X are scaled to mean 0 and standard deviation 1.
    steps : int, default=20
        The number of steps of inference.
    inference_rate : float, default=0.5
        The length of a step of inference.
    device : str, torch.device or None, default=None
        The device on which the network is trained: None for the CPU, "cuda" for a GPU.
    validation_fraction : float, default=0.1
        The share of examples that is held out to find ``energy_hidden``, the number of epochs and the threshold.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples, of the weights, of dropout and of the batches.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    perceptron_ : Perceptron
        The perceptron s, trained on all examples.
    value_ : ValueNetwork
        The value v, trained on all examples.
    history_ : History
        The cross-entropy and the validation error of each epoch, with held-out examples.
    energy_hidden_ : int
        The chosen number of softplus units.
    candidates_ : array or CSR matrix
        The distinct training outputs.
    allows_empty_ : bool
        Whether label sets may be empty: whether a training row was. If not, the label with the highest score is
        predicted where no score reaches the threshold.
    threshold_ : float
        The smallest score of a predicted label.
    validation_error_ : float
        1 − F1 on the held-out examples.

    See Also
    --------
    SPEN : A network with a learned energy, trained on a hinge loss.
    NN : A network without dependence between the labels.

    References
    ----------
    Gygli, Norouzi and Angelova, *Deep Value Networks Learn to Evaluate and Iteratively Refine Structured Outputs*, ICML
    2017. They train by plain gradient descent, for longer.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import DVN
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> Y = np.column_stack([X[:, 0] > 0, X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    >>> DVN(hidden=(20,), energy_hidden=4, learning_rate=0.01).fit(X, Y).predict([[1.0, 1.0], [-1.0, 1.0]])
    array([[1, 1, 1],
           [0, 0, 1]])
    """

    tuned_parameter: ClassVar[str] = "energy_hidden"
    _labels_only: ClassVar[bool] = True

    def __init__(
        self,
        hidden: Sequence[int] = (150,),
        *,
        energy_hidden: int | Sequence[int] = 16,
        dropout: float = 0.0,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        epochs: int = 60,
        patience: int = 20,
        batch_size: int = 32,
        standardize: bool = True,
        steps: int = 20,
        inference_rate: float = 0.5,
        device: DeviceLike = None,
        validation_fraction: float = 0.1,
        random_state: RandomStateLike = 0,
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
        self.steps = steps
        self.inference_rate = inference_rate
        self.device = device
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for value in self._tuned_values():
            check_width(value, "energy_hidden")
        validation.check_count(self.steps, "steps")
        validation.check_regularization(self.inference_rate, "inference_rate")

    def _initial_settings(self, value: int) -> tuple[int, int | None]:
        return value, None

    def _learn(
        self, X: Samples, Y: Array, settings: tuple[int, int | None], held_out: Pairs | None
    ) -> tuple[int, int | None]:
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

        from psilearn_lab.baselines.energies import ValueNetwork, relaxed_f1
        from psilearn_lab.neural.batches import TensorRows
        from psilearn_lab.neural.epochs import Schedule, train
        from psilearn_lab.neural.perceptron import build_perceptron

        energy_hidden, epochs = settings
        options = self._options()
        with fixed_seed(self.random_state, options.device) as rng:
            self.perceptron_ = build_perceptron(X, Y.shape[1], options)
            value = ValueNetwork(self.perceptron_.network, Y.shape[1], energy_hidden).to(options.device)
            self.value_ = value
            inputs, truth = self.perceptron_.input_rows(X), TensorRows(Y, options.device)

            def loss(rows: Index) -> torch.Tensor:
                scores, y = value.network(inputs[rows]), truth[rows]
                example = self._generate(scores.detach(), y, rng)
                return cross_entropy(value.logit(scores, example), relaxed_f1(example, y))

            validate = None
            if held_out:
                held_out_rows, Y_held_out = self.perceptron_.input_rows(held_out[0]), held_out[1]

                def validate() -> float:
                    return self._validation_error(Y_held_out, self._infer(held_out_rows))

            optimizer = torch.optim.AdamW(value.parameters(), self.learning_rate, weight_decay=self.weight_decay)
            drops = [max(1, round(part * self.epochs)) for part in RATE_DROPS]
            scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, drops, gamma=0.1)
            schedule = Schedule(self.epochs if epochs is None else epochs, self.batch_size, self.patience)
            description = "value network, validated" if held_out else "value network"
            history = train(value, optimizer, loss, len(Y), schedule, rng, description, validate, scheduler)
        if held_out:
            self.history_ = history
        return energy_hidden, history.best_epoch

    def _generate(self, scores: torch.Tensor, y: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        """Return label sets to learn from for a batch with the true labels y: inferred, or adversarial ones."""
        import torch

        from psilearn_lab.baselines.energies import relaxed_f1

        if rng.random() >= 0.5:
            return self.value_.ascend(scores, self.steps, float(self.inference_rate))
        from_truth = torch.as_tensor(rng.random(len(y)) < 0.5, device=y.device)
        start = torch.where(from_truth[:, None], y, torch.zeros_like(y))
        return self.value_.perturb(scores, start, relaxed_f1(start, y), float(self.inference_rate))

    def _predict_soft(self, X: Samples) -> Array:
        return self._infer(self.perceptron_.input_rows(X))

    def _infer(self, rows: TensorRows) -> Array:
        """Return relaxed labels of high value, float64 (len(rows), L), block by block."""
        import torch

        self.value_.eval()
        blocks = []
        with torch.no_grad():
            for part in iter_blocks(len(rows), 1, INFERENCE_ROWS):
                scores = self.value_.network(rows[part])
                blocks.append(self.value_.ascend(scores, self.steps, float(self.inference_rate)).cpu().numpy())
        return np.concatenate(blocks).astype(np.float64)

    def _linear_costs(self, X: Samples) -> Array:
        return -self.perceptron_(X)

    def _candidate_costs(self, C: Samples) -> Array:
        from psilearn_lab.baselines.energies import evaluate_term

        return -evaluate_term(self.value_.term, self.perceptron_, C)
