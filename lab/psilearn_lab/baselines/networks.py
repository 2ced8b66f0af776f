"""Baselines that are networks: the perceptron, structured prediction energy networks and deep value networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from scipy.special import expit
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

from psilearn.utils import Index, Samples, validation
from psilearn_lab.arrays import Array, Pairs, iter_blocks
from psilearn_lab.baselines.baseline import Baseline
from psilearn_lab.baselines.energies import (
    INFERENCE_ROWS,
    GlobalTerm,
    LabelSpace,
    NumberSpace,
    OutputSpace,
    ValueNetwork,
    evaluate_term,
    hinge_loss,
    infer,
    relaxed_f1,
)
from psilearn_lab.neural.epochs import History, Schedule, train
from psilearn_lab.neural.parameters import NetworkParameters, check_width, fixed_seed, resolve_device
from psilearn_lab.neural.perceptron import Perceptron, TensorRows, build_perceptron, evaluate, fit_perceptron

RATE_DROPS = (0.4, 0.8)  # parts of the epochs of DVN after which the learning rate is divided by ten


@dataclass(eq=False, repr=False, kw_only=True)
class Network(NetworkParameters, Baseline):
    """Base class of the baselines on torch."""

    def _needs_validation(self) -> bool:
        return True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self.check_network()


@dataclass(eq=False, repr=False, kw_only=True)
class NN(Network):
    """Multi-layer perceptron, trained on the cross-entropy of labels or on squared errors of numbers.

    The number of epochs is found on held-out examples, by F1 or by the squared error; then the network is trained on
    all examples for this number of epochs. Candidates are compared by their probability, or by their squared distance
    to the prediction.

    Parameters
    ----------
    hidden : sequence of int, default=(150, 150)
        The widths of the hidden layers; an empty sequence gives a linear model.
    validation_fraction : float, default=0.1
        The share of examples that is held out to find the number of epochs and the threshold.
    device : str, torch.device or None, default=None
        The device on which the network is trained: None for the CPU, "cuda" for a GPU.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples, of the weights, of dropout and of the batches.
    verbose : int, default=0
        Whether to show a progress bar.
    dropout : float, default=0.5
        The probability in [0, 1) with which a hidden unit is dropped during training.
    learning_rate : float, default=1e-3
        The learning rate of AdamW.
    weight_decay : float, default=1e-2
        The weight decay of AdamW.
    epochs : int, default=200
        The largest number of epochs.
    patience : int, default=15
        The number of epochs without improvement on held-out examples after which training stops.
    batch_size : int, default=64
        The number of examples per step.
    standardize : bool, default=True
        Whether the columns of X are scaled to mean 0 and standard deviation 1.

    Attributes
    ----------
    network_ : Perceptron
        The network that was trained on all examples.
    history_ : History
        The training loss and the validation error of each epoch, with held-out examples.
    binary_ : bool
        Whether the outputs are rows of labels.
    candidates_ : array or CSR matrix
        The distinct training outputs.
    allows_empty_ : bool
        Whether label sets may be empty: whether a training row was. Only for labels. If not, the label with the
        highest score is predicted where no score reaches the threshold.
    threshold_ : float
        The smallest probability of a predicted label. Only for labels.
    validation_error_ : float
        1 − F1, or the mean squared distance, on the held-out examples.

    See Also
    --------
    SPEN : A network with a learned energy of the output.
    psilearn_lab.neural.NeuralRegressor : A network as the regression of output embedding learning.

    References
    ----------
    The baseline of Belanger and McCallum, *Structured Prediction Energy Networks*, ICML 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import NN
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> Y = np.column_stack([X[:, 0] * X[:, 1] > 0, X[:, 0] > 0]).astype(int)
    >>> NN(hidden=(30, 30), dropout=0.0, learning_rate=0.01).fit(X, Y).predict([[1.0, 1.0], [-1.0, 1.0]])
    array([[1, 1],
           [0, 0]])
    """

    def _learn(self, X: Samples, Y: Array, settings: int | None, held_out: Pairs | None) -> int:
        epochs = self.epochs if settings is None else settings
        description = "network, validated" if held_out else "network"
        with fixed_seed(self.random_state, resolve_device(self.device)) as rng:
            self.network_, history = fit_perceptron(
                X, Y, self, epochs, rng, description, self.binary_, held_out, self._validation_error
            )
        if held_out:
            self.history_ = history
        return history.best_epoch

    def _predict_soft(self, X: Samples) -> Array:
        outputs = self.network_(X)
        return np.asarray(expit(outputs)) if self.binary_ else outputs

    def _linear_costs(self, X: Samples) -> Array:
        return -self.network_(X) if self.binary_ else super()._linear_costs(X)

    def _candidate_costs(self, C: Samples) -> Array:
        costs = super()._candidate_costs(C)
        return 0 * costs if self.binary_ else costs


@dataclass(frozen=True)
class SPENSettings:
    """The number of softplus units and the epochs of both phases; None if validation finds them."""

    energy_hidden: int
    feature_epochs: int | None = None
    energy_epochs: int | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class SPEN(Network):
    """Structured prediction energy network: the prediction is the minimum of a learned energy.

    E(x, y) = −⟨BF(x) + b, y⟩ + ⟨w, softplus(Cy + c)⟩ + R(y) over relaxed outputs, labels in [0, 1] or numbers within
    the range of the training outputs; R is minus the entropy, or ½|y|². First the feature network F is trained alone,
    as :class:`NN` is; then F is fixed, and B, b, C, c and w are trained on the structured hinge loss

        max(0, Δ(ŷ, y) − E(x, ŷ) + E(x, y)),   ŷ of low E(x, ŷ) − Δ(ŷ, y)  (loss-augmented inference),

    where Δ is the number of wrong labels, or ¼|ŷ − y|². Inference is entropic mirror descent for labels and projected
    gradient descent for numbers, from the prediction of the feature network. Held-out examples stop both phases, by F1
    or by the squared error; then the network is trained on all examples for the same numbers of epochs. Candidates are
    compared by their energy.

    Parameters
    ----------
    hidden : sequence of int, default=(150, 150)
        The widths of the hidden layers of F.
    validation_fraction : float, default=0.1
        The share of examples that is held out to find ``energy_hidden``, the numbers of epochs and the threshold.
    device : str, torch.device or None, default=None
        The device on which the network is trained: None for the CPU, "cuda" for a GPU.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples, of the weights, of dropout and of the batches.
    verbose : int, default=0
        Whether to show a progress bar.
    dropout : float, default=0.5
        The probability in [0, 1) with which a hidden unit of F is dropped during training.
    learning_rate : float, default=1e-3
        The learning rate of AdamW for F.
    weight_decay : float, default=1e-2
        The weight decay of AdamW for F.
    epochs : int, default=200
        The largest number of epochs for F.
    patience : int, default=15
        The number of epochs without improvement on held-out examples after which each phase stops.
    batch_size : int, default=64
        The number of examples per step.
    standardize : bool, default=True
        Whether the columns of X are scaled to mean 0 and standard deviation 1.
    energy_hidden : int or sequence of int, default=16
        The number of softplus units; the best value of a sequence is chosen on held-out examples, and F is trained
        again for each value.
    energy_learning_rate : float, default=1e-3
        The learning rate of Adam for the energy, the second phase.
    energy_epochs : int, default=100
        The largest number of epochs for the energy.
    steps : int, default=20
        The number of steps of inference.
    inference_rate : float, default=0.3
        The length of a step of inference, in (0, 1].

    Attributes
    ----------
    network_ : Perceptron
        The feature network with its last layer, trained on all examples.
    term_ : GlobalTerm
        The term ⟨w, softplus(Cy + c)⟩ of the energy, trained on all examples.
    space_ : LabelSpace or NumberSpace
        The space of relaxed outputs.
    pretraining_ : History
        The training loss and the validation error of the feature network in each epoch, with held-out examples.
    history_ : History
        The hinge loss on training examples and the validation error of each epoch of the second phase.
    validation_hinge_ : list of float
        The hinge loss on held-out examples before the second phase and after each of its epochs.
    inference_curve_ : list of float
        The mean of E(x, ŷ) − Δ(ŷ, y) over held-out examples before each step of inference and after the last one.
    energy_hidden_ : int
        The chosen number of softplus units.
    binary_ : bool
        Whether the outputs are rows of labels.
    candidates_ : array or CSR matrix
        The distinct training outputs.
    allows_empty_ : bool
        Whether label sets may be empty: whether a training row was. Only for labels. If not, the label with the
        highest score is predicted where no score reaches the threshold.
    threshold_ : float
        The smallest score of a predicted label. Only for labels.
    validation_error_ : float
        1 − F1, or the mean squared distance, on the held-out examples.

    See Also
    --------
    NN : The feature network alone.
    DVN : A network that learns the quality of outputs.
    psilearn_lab.experiments.usps.plot_convergence : Draw the training.

    References
    ----------
    Belanger and McCallum, *Structured Prediction Energy Networks*, ICML 2016. The entropy inside the energy, and the
    quadratic term for numbers, are choices of this library.

    Examples
    --------
    >>> import numpy as np
    >>> from psilearn_lab.baselines import SPEN
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> Y = np.column_stack([X[:, 0] > 0, X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    >>> model = SPEN(hidden=(20, 20), energy_hidden=4, dropout=0.0, learning_rate=0.01).fit(X, Y)
    >>> model.predict([[1.0, 1.0], [-1.0, 1.0]])
    array([[1, 1, 1],
           [0, 0, 1]])
    """

    energy_hidden: int | Sequence[int] = 16
    energy_learning_rate: float = 1e-3
    energy_epochs: int = 100
    steps: int = 20
    inference_rate: float = 0.3

    tuned_parameter: ClassVar[str] = "energy_hidden"
    _check_tuned = staticmethod(check_width)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_positive(self.energy_learning_rate, "energy_learning_rate")
        validation.check_count(self.energy_epochs, "energy_epochs")
        validation.check_count(self.steps, "steps")
        if validation.check_positive(self.inference_rate, "inference_rate") > 1:
            raise ValueError(f"inference_rate must be at most 1; got {self.inference_rate!r}.")

    def _initial_settings(self, value: int) -> SPENSettings:
        return SPENSettings(value)

    def _learn(self, X: Samples, Y: Array, settings: SPENSettings, held_out: Pairs | None) -> SPENSettings:

        epochs = self.epochs if settings.feature_epochs is None else settings.feature_epochs
        with fixed_seed(self.random_state, resolve_device(self.device)) as rng:
            description = "feature network, validated" if held_out else "feature network"
            network, pretraining = fit_perceptron(
                X, Y, self, epochs, rng, description, self.binary_, held_out, self._validation_error
            )
            history = self._learn_energy(network, X, Y, settings, held_out, rng)
        if held_out:
            self.pretraining_, self.history_ = pretraining, history
        return SPENSettings(settings.energy_hidden, pretraining.best_epoch, history.best_epoch)

    def _learn_energy(
        self,
        network: Perceptron,
        X: Samples,
        Y: Array,
        settings: SPENSettings,
        held_out: Pairs | None,
        rng: np.random.Generator,
    ) -> History:
        """Train the last layer and the global term on the hinge loss, with fixed features."""
        self.network_, self.space_ = network, self._make_space(network, Y)
        self.term_ = GlobalTerm(Y.shape[1], settings.energy_hidden).to(network.device)
        features, truth = self._feature_rows(X), network.target_rows(Y)

        def loss(rows: Index) -> torch.Tensor:
            return self._hinge(network.last(features[rows]), truth[rows])

        validate = None
        if held_out:
            held_out_features, held_out_truth = self._feature_rows(held_out[0]), network.target_rows(held_out[1])
            self.validation_hinge_: list[float] = []

            def validate() -> float:
                scores = network.last(held_out_features[:])
                self.validation_hinge_.append(float(self._hinge(scores, held_out_truth[:])))
                return self._validation_error(held_out[1], self._infer(scores))

        trained = torch.nn.ModuleList([network.last, self.term_])
        optimizer = torch.optim.Adam(trained.parameters(), self.energy_learning_rate)
        epochs = self.energy_epochs if settings.energy_epochs is None else settings.energy_epochs
        schedule = Schedule(epochs, self.batch_size, self.patience)
        remedy = "Lower energy_learning_rate."
        history = train(trained, optimizer, loss, len(Y), schedule, rng, "energy", validate, remedy=remedy)
        if held_out:
            self.inference_curve_: list[float] = []
            self._descend(network.last(held_out_features[:]), held_out_truth[:], self.inference_curve_)
        return history

    def _make_space(self, network: Perceptron, Y: Array) -> OutputSpace:
        """Return the space of relaxed outputs: labels, or numbers within the range of Y in the units of the network."""
        if self.binary_:
            return LabelSpace()
        low, high = network.target_rows(np.array([Y.min(axis=0), Y.max(axis=0)]))[:]
        return NumberSpace(low, high)

    def _feature_rows(self, X: Samples) -> TensorRows:
        """Return the features F(x) of inputs, computed once."""
        network = self.network_
        return TensorRows(evaluate(network.features, network.input_rows(X), network.last.in_features), network.device)

    def _descend(
        self, scores: torch.Tensor, truth: torch.Tensor | None = None, curve: list[float] | None = None
    ) -> torch.Tensor:
        """Return relaxed outputs of low energy; with the truth, by loss-augmented inference."""
        return infer(scores, self.term_, self.space_, self.steps, self.inference_rate, truth, curve)

    def _hinge(self, scores: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return the mean hinge loss of rows of scores at the outputs of loss-augmented inference."""
        return hinge_loss(scores, truth, self._descend(scores, truth), self.term_, self.space_).mean()

    def _infer(self, scores: torch.Tensor) -> Array:
        """Return outputs of low energy in their own units, float64."""
        relaxed = self._descend(scores).cpu().numpy().astype(np.float64)
        return np.asarray(self.network_.center + self.network_.unit * relaxed)

    def _predict_soft(self, X: Samples) -> Array:

        rows = self.network_.input_rows(X)
        with torch.no_grad():
            blocks = [self._infer(self.network_.network(rows[p])) for p in iter_blocks(len(rows), 1, INFERENCE_ROWS)]
        return np.concatenate(blocks)

    def _linear_costs(self, X: Samples) -> Array:
        # u²E as a function of y, where E is defined on (y − center)/u
        return -self.network_.unit * self.network_.scores(X)

    def _candidate_costs(self, C: Samples) -> Array:

        extra = None if self.binary_ else self.space_.regularizer  # labels 0 and 1 have no entropy
        return self.network_.unit**2 * evaluate_term(self.term_, self.network_, C, extra)


@dataclass(eq=False, repr=False, kw_only=True)
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
    validation_fraction : float, default=0.1
        The share of examples that is held out to find ``energy_hidden``, the number of epochs and the threshold.
    device : str, torch.device or None, default=None
        The device on which the network is trained: None for the CPU, "cuda" for a GPU.
    random_state : int, RandomState or None, default=0
        The random seed of the held-out examples, of the weights, of dropout and of the batches.
    verbose : int, default=0
        Whether to show a progress bar.
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
    energy_hidden : int or sequence of int, default=16
        The number of softplus units; the best value of a sequence is chosen on held-out examples.
    steps : int, default=20
        The number of steps of inference.
    inference_rate : float, default=0.5
        The length of a step of inference.

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

    hidden: Sequence[int] = field(default=(150,), kw_only=False)
    energy_hidden: int | Sequence[int] = 16
    dropout: float = 0.0
    epochs: int = 60
    patience: int = 20
    batch_size: int = 32
    steps: int = 20
    inference_rate: float = 0.5

    tuned_parameter: ClassVar[str] = "energy_hidden"
    _check_tuned = staticmethod(check_width)
    _labels_only: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_count(self.steps, "steps")
        validation.check_regularization(self.inference_rate, "inference_rate")

    def _initial_settings(self, value: int) -> tuple[int, int | None]:
        return value, None

    def _learn(
        self, X: Samples, Y: Array, settings: tuple[int, int | None], held_out: Pairs | None
    ) -> tuple[int, int | None]:

        energy_hidden, epochs = settings
        device = resolve_device(self.device)
        with fixed_seed(self.random_state, device) as rng:
            self.perceptron_ = build_perceptron(X, Y.shape[1], self)
            value = ValueNetwork(self.perceptron_.network, Y.shape[1], energy_hidden).to(device)
            self.value_ = value
            inputs, truth = self.perceptron_.input_rows(X), TensorRows(Y, device)

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
        if rng.random() >= 0.5:
            return self.value_.ascend(scores, self.steps, float(self.inference_rate))
        from_truth = torch.as_tensor(rng.random(len(y)) < 0.5, device=y.device)
        start = torch.where(from_truth[:, None], y, torch.zeros_like(y))
        return self.value_.perturb(scores, start, relaxed_f1(start, y), float(self.inference_rate))

    def _predict_soft(self, X: Samples) -> Array:
        return self._infer(self.perceptron_.input_rows(X))

    def _infer(self, rows: TensorRows) -> Array:
        """Return relaxed labels of high value, float64 (len(rows), L), block by block."""
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

        return -evaluate_term(self.value_.term, self.perceptron_, C)
