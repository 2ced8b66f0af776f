"""The rows of a result: our value of a metric next to the paper's."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, SupportsFloat, cast

MAX_DIGITS = 12


@dataclass(frozen=True)
class Metric:
    """What a value measures, and which direction is better.

    Parameters
    ----------
    name : str
        Name of the metric in tables.
    better : {"lower", "higher"}
        Which values are better.
    digits : int, default=3
        Number of decimals that are shown, at most 12.
    spread : str, default="s.e."
        What follows ±: ``"s.e."`` for the standard error over the test examples, ``"s.d."`` for the standard deviation
        over repetitions.

    Raises
    ------
    ValueError
        If ``better`` or ``digits`` has another value.

    See Also
    --------
    Row : One value of a metric.

    Examples
    --------
    >>> from psilearn_lab.experiments import Metric
    >>> Metric("F1", "higher", digits=1)
    Metric(name='F1', better='higher', digits=1, spread='s.e.')
    """

    name: str
    better: str
    digits: int = 3
    spread: str = "s.e."

    def __post_init__(self) -> None:
        check_types(self, str, "name", "better", "spread")
        if self.better not in ("lower", "higher"):
            raise ValueError(f"better must be 'lower' or 'higher', not {self.better!r}.")
        if type(self.digits) is not int or not 0 <= self.digits <= MAX_DIGITS:
            raise ValueError(f"digits must be an integer between 0 and {MAX_DIGITS}, not {self.digits!r}.")


@dataclass(frozen=True)
class Row:
    """The value of a metric for one method on one dataset, ours next to the paper's.

    Unknown numbers are None. NaN is rejected, because it compares as neither better nor worse than anything.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    method : str
        Name of the method.
    metric : Metric
        The metric of the value.
    value : float or None, default=None
        Our value; None if the paper's value is quoted and nothing was measured.
    error : float or None, default=None
        The spread of our value, as named by ``metric.spread``.
    paper : float or None, default=None
        The paper's value.
    paper_error : float or None, default=None
        The spread of the paper's value.
    comparable : bool, default=True
        False if the paper's value was obtained on other data or on another machine: it is shown without a verdict.
    parameters : dict, default={}
        Every hyper-parameter that was chosen or set.
    seconds : dict of str to float, default={}
        The time of each step, such as ``"choose"``, ``"fit"`` and ``"decode"``.
    source : str, default=""
        Where a quoted value comes from.

    Raises
    ------
    ValueError
        If a number is not finite.

    See Also
    --------
    Metric : What a value measures.
    Outcome : The rows of a part.

    Examples
    --------
    >>> from psilearn_lab.experiments import Metric, Row
    >>> row = Row("USPS", "OEL", Metric("RBF loss", "lower"), 0.72, paper=0.725)
    >>> row.difference, row.verdict
    (-0.005, 'pass')
    """

    dataset: str
    method: str
    metric: Metric
    value: float | None = None
    error: float | None = None
    paper: float | None = None
    paper_error: float | None = None
    comparable: bool = True
    parameters: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        check_types(self, str, "dataset", "method", "source")
        check_types(self, dict, "parameters", "seconds")
        check_types(self, bool, "comparable")
        numbers = {"value": self.value, "error": self.error, "paper": self.paper, "paper_error": self.paper_error}
        numbers |= self.seconds
        for name, number in numbers.items():
            if number is not None and not is_finite(number):
                raise ValueError(f"{self.dataset}, {self.method}: {name} must be a finite number, not {number!r}.")

    @property
    def quoted(self) -> bool:
        """Whether there is only the paper's value."""
        return self.value is None

    @property
    def difference(self) -> float | None:
        """Our value minus the paper's, without rounding errors; None if one of them is unknown."""
        return None if self.value is None or self.paper is None else round(self.value - self.paper, 12)

    @property
    def verdict(self) -> str:
        """One of "pass", "falls short", "quoted", "not comparable" and, if the paper has no value, ""."""
        if self.quoted:
            return "quoted"
        if self.difference is None:
            return ""
        if not self.comparable:
            return "not comparable"
        gain = -self.difference if self.metric.better == "lower" else self.difference
        return "pass" if gain >= 0 else "falls short"


def check_types(instance: object, kind: type, *names: str) -> None:
    """Raise a TypeError if one of the named attributes has another type."""
    for name in names:
        value = getattr(instance, name)
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be of type {kind.__name__}, not {value!r:.80}.")


def is_finite(number: object) -> bool:
    """Tell whether a value, perhaps read from a file, is a finite number."""
    try:
        return not isinstance(number, bool | str) and math.isfinite(cast(SupportsFloat, number))
    except (TypeError, OverflowError):
        return False
