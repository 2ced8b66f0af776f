"""Deep value networks."""

from __future__ import annotations

from collections.abc import Sequence
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
    from psilearn.neural.batches import Rows

BLOCK = 4096  # outputs that are inferred together
DROPS = (0.4, 0.8)  # of the epochs, after which the learning rate falls to a tenth


class DVN(Network):
    """Deep value network: learn to predict how good an output is, then climb to a good one.

    v(x, y) = σ(⟨s(x), y⟩ + ⟨w, softplus(Cy + c)⟩ + v₀), s a perceptron, is trained by cross-entropy to the F1 of y,
    relaxed to [0, 1] as 2Σmin(y, y*)/(Σmin(y, y*) + Σmax(y, y*)). Outputs to learn from are made anew for each batch:
    by inference as in prediction, or, half of the time, adversarially, by one step uphill in the error of v, from the
    truth or from no labels. Prediction climbs ``steps`` steps up v from no labels, inside [0, 1].

    The learning rate falls to a tenth after 40 % and after 80 % of the epochs. Held-out examples find the number of
    epochs that is best, by F1; then all examples are learned from for as long. Candidates are judged by their value.

    Parameters
    ----------
    hidden : widths of the hidden layers of s
    energy_hidden : int, or list of them
        the number of softplus units; of a list, the best on held-out examples is taken.
    dropout : float in [0, 1)
    learning_rate, weight_decay : float
        of AdamW.
    epochs, patience, batch_size, standardize :
        as in :class:`NN`.
    steps : int
        of inference.
    inference_rate : float
        the length of a step.
    device, validation_fraction, random_state, verbose :
        as in :class:`NN`.

    Attributes
    ----------
    history_ : History
        cross-entropy of each epoch, validation error.
    energy_hidden_ : int
        chosen.
    threshold_, validation_error_ : float

    References
    ----------
    Gygli, Norouzi and Angelova, *Deep Value Networks Learn to Evaluate and Iteratively Refine Structured Outputs*, ICML
    2017. They train by plain gradient descent, for longer.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn.baselines import DVN
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> Y = np.column_stack([X[:, 0] > 0, X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    >>> DVN(hidden=(20,), energy_hidden=4, learning_rate=0.01).fit(X, Y).predict([[1.0, 1.0], [-1.0, 1.0]])
    array([[1, 1, 1],
           [0, 0, 1]])
    """

    _tuned = "energy_hidden"
    _binary_only = True

    def __init__(
        self,
        hidden: Sequence[int] = (150,),
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
        validation.check_count(self.steps, "steps")
        validation.check_positive(self.inference_rate, "inference_rate")

    def _settings(self, value: int) -> tuple[int, int | None]:
        return value, None

    def _learn(
        self, X: Samples, Y: Array, settings: tuple[int, int | None], held_out: tuple[Samples, Array] | None
    ) -> tuple[int, int | None]:
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

        from psilearn.baselines.energies import Value, relaxed_f1
        from psilearn.neural.batches import Rows
        from psilearn.neural.epochs import Schedule, train
        from psilearn.neural.perceptron import untrained

        energy_hidden, epochs = settings
        options = self._options()
        with seeded(self.random_state, options.device) as rng:
            self.perceptron_ = untrained(X, Y.shape[1], options)
            value = Value(self.perceptron_.network, Y.shape[1], energy_hidden).to(options.device)
            self.value_ = value
            inputs, truth = self.perceptron_.rows(X), Rows(Y, options.device)

            def loss(rows: Any) -> torch.Tensor:
                scores, y = value.network(inputs[rows]), truth[rows]
                fixed = scores.detach()
                if rng.random() < 0.5:
                    from_truth = torch.as_tensor(rng.random(len(rows)) < 0.5, device=options.device)
                    start = torch.where(from_truth[:, None], y, torch.zeros_like(y))
                    example = value.adversary(fixed, start, relaxed_f1(start, y), self.inference_rate)
                else:
                    example = value.climb(fixed, self.steps, self.inference_rate)
                return cross_entropy(value.logit(scores, example), relaxed_f1(example, y))

            validate = None
            if held_out:
                rows_held, Y_held = self.perceptron_.rows(held_out[0]), held_out[1]
                error = validation_error(binary=True)

                def validate() -> float:
                    return error(Y_held, self._climbed(rows_held))

            optimizer = torch.optim.AdamW(value.parameters(), self.learning_rate, weight_decay=self.weight_decay)
            drops = [max(1, round(part * self.epochs)) for part in DROPS]
            scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, drops, gamma=0.1)
            schedule = Schedule(self.epochs if epochs is None else epochs, self.batch_size, self.patience)
            what = "value network, validated" if held_out else "value network"
            history = train(value, optimizer, loss, len(Y), schedule, rng, what, validate, scheduler)
        if held_out:
            self.history_ = history
        return energy_hidden, history.best_epoch

    def _soft(self, X: Samples) -> Array:
        return self._climbed(self.perceptron_.rows(X))

    def _climbed(self, rows: Rows) -> Array:
        import torch

        self.value_.eval()
        found = []
        with torch.no_grad():
            for part in row_blocks(len(rows), 1, BLOCK):
                scores = self.value_.network(rows[part])
                found.append(self.value_.climb(scores, self.steps, self.inference_rate).cpu().numpy())
        return np.concatenate(found).astype(np.float64)

    def _linear_costs(self, X: Samples) -> Array:
        return -self.perceptron_(X)

    def _candidate_costs(self, C: Samples) -> Array:
        from psilearn.baselines.energies import values_of

        return -values_of(self.value_.term, self.perceptron_, C)
