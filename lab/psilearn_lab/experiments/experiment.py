"""Experiments: parts with sizes and grids as JSON data, each with one function that runs it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from psilearn.utils import write_atomically
from psilearn_lab.arrays import read_npz
from psilearn_lab.experiments.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Config: TypeAlias = Mapping[str, Any]  # values are JSON data: numbers, strings, lists and dicts
Log: TypeAlias = Callable[[str], None]
CaptionedFigures: TypeAlias = "dict[str, tuple[Figure, str]]"  # name → figure and caption


@dataclass(frozen=True)
class Context:
    """The settings that a part runs with.

    Parameters
    ----------
    config : mapping of str to JSON data
        Sizes and grids of the part.
    seed : int
        Random seed.
    n_jobs : int or None
        Number of processes of the searches, as in joblib.
    log : callable
        Called with one line of text for each step that starts.
    scratch : Path or None, default=None
        Folder that keeps the finished steps of an unfinished part. If None, nothing is kept.
    device : str or None, default=None
        The torch device that computes, such as ``"cuda"``, in the parts that can use one. None computes with NumPy.

    See Also
    --------
    Part : A unit of work, whose function receives a context.

    Examples
    --------
    >>> from psilearn_lab.experiments import Context
    >>> context = Context({"pairs": 100}, seed=0, n_jobs=None, log=print)
    >>> context.log(f"fitting {context.config['pairs']} pairs")
    fitting 100 pairs
    """

    config: Config
    seed: int
    n_jobs: int | None
    log: Log
    scratch: Path | None = None
    device: str | None = None

    @property
    def can_draw(self) -> bool:
        """Whether matplotlib, which is an optional dependency, is installed."""
        return find_spec("matplotlib") is not None

    def search_options(self) -> dict[str, Any]:
        """Return the parameters of a search that set where it runs.

        Returns
        -------
        dict of str to object
            ``device`` and ``n_jobs``, which is None on a device, because processes cannot share it.

        See Also
        --------
        psilearn.OELCV : A search that takes these parameters.

        Examples
        --------
        >>> from psilearn_lab.experiments import Context
        >>> Context({}, seed=0, n_jobs=2, log=print, device="cpu").search_options()
        {'n_jobs': None, 'device': 'cpu'}
        """
        return {"n_jobs": self.n_jobs if self.device is None else None, "device": self.device}

    def compute_once(self, name: str, compute: Callable[[], Mapping[str, npt.ArrayLike]]) -> dict[str, Any]:
        """Return named arrays, from a previous interrupted run of the part if it kept them.

        Parameters
        ----------
        name : str
            Name of the step; it becomes the name of a file in ``scratch``.
        compute : callable
            Computes the arrays. It is called only if there is no readable file.

        Returns
        -------
        dict of str to ndarray
            The arrays by name.

        See Also
        --------
        run : Run the parts of an experiment, each with its own ``scratch``.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from psilearn_lab.experiments import Context
        >>> with TemporaryDirectory() as folder:
        ...     context = Context({}, seed=0, n_jobs=None, log=print, scratch=Path(folder))
        ...     first = context.compute_once("loss", lambda: {"loss": [0.5, 0.25]})
        ...     context.compute_once("loss", lambda: {})["loss"]
        array([0.5 , 0.25])
        """
        path = None if self.scratch is None else self.scratch / f"{name}.npz"
        if path is not None and path.is_file():
            try:
                return read_npz(path)
            except (OSError, ValueError):
                self.log(f"{name}: the stored file is damaged; computing it again")
        arrays: dict[str, Any] = {key: np.asarray(value) for key, value in compute().items()}
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            content = io.BytesIO()
            np.savez_compressed(content, **arrays)
            write_atomically(path, content.getvalue())
        return arrays


@dataclass
class Outcome:
    """The results that a part returns.

    Parameters
    ----------
    rows : list of Row
        One row per method, dataset and metric.
    notes : list of str, default=[]
        Sentences that are shown below the table.
    figures : dict of str to (Figure, str), default={}
        Matplotlib figures with their captions, by name.

    See Also
    --------
    Part : A unit of work, whose function returns an outcome.
    Record : An outcome with everything that led to it, as it is stored.

    Examples
    --------
    >>> from psilearn_lab.experiments import Metric, Outcome, Row
    >>> Outcome([Row("USPS", "OEL", Metric("RBF loss", "lower"), 0.72)], ["Chosen by validation."]).notes
    ['Chosen by validation.']
    """

    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    figures: CaptionedFigures = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A unit of work of an experiment, usually one dataset.

    Parameters
    ----------
    name : str
        Letters, digits, ``_`` and ``-``; it becomes the name of a file.
    title : str
        Heading of the part in the report.
    run : callable
        Takes a :class:`Context` and returns an :class:`Outcome`.
    config : mapping of str to JSON data
        Sizes and grids (numbers, strings, lists, dicts). They are stored with the result, and a part whose config
        changed is computed again.
    quick : mapping of str to JSON data
        Entries that replace those of ``config`` in a quick run.
    trial : bool, default=True
        Whether a quick run uses too little data to be compared with the paper.

    See Also
    --------
    Experiment : A table or figure of the paper, made of parts.
    run : Run the parts of an experiment.

    Examples
    --------
    >>> from psilearn_lab.experiments import Outcome, Part
    >>> part = Part("toy", "A toy problem", lambda context: Outcome([]), {"pairs": 1000}, {"pairs": 50})
    >>> part.trial
    True
    """

    name: str
    title: str
    run: Callable[[Context], Outcome]
    config: Config
    quick: Config
    trial: bool = True

    def __post_init__(self) -> None:
        _check_name(self.name, "a part")


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Parameters
    ----------
    name : str
        Letters, digits, ``_`` and ``-``; it becomes the name of a folder.
    title : str
        Heading of the experiment in the report.
    source : str
        The table or figure of the paper, such as ``"Table 3"``.
    protocol : str
        How the results are obtained; empty lines separate paragraphs.
    parts : tuple of Part
        Parts with different names, in the order in which they run.

    Raises
    ------
    ValueError
        If a name contains other characters, or if two parts have the same name.

    See Also
    --------
    find : Return an experiment of the paper by its name.
    run : Run the parts of an experiment.

    Examples
    --------
    >>> from psilearn_lab.experiments import Experiment, Outcome, Part
    >>> part = Part("toy", "A toy problem", lambda context: Outcome([]), {"pairs": 1000}, {"pairs": 50})
    >>> experiment = Experiment("toys", "Toy problems", "Table 1", "Fit and test once.", (part,))
    >>> [part.name for part in experiment.parts]
    ['toy']
    """

    name: str
    title: str
    source: str
    protocol: str
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        _check_name(self.name, "an experiment")
        names = [part.name for part in self.parts]
        if len(set(names)) < len(names):
            raise ValueError(f"The parts of {self.name} must have different names; got {', '.join(names)}.")


def figure_of(axes: Axes) -> Figure:
    """Return the figure of axes that are not part of a subfigure."""
    return cast("Figure", axes.figure)


def _check_name(name: str, owner: str) -> None:
    """Reject a name that cannot be the name of a file or folder."""
    if not re.fullmatch(r"[\w-]+", name):
        raise ValueError(f"The name of {owner} must consist of letters, digits, _ and -; got {name!r}.")


class PartError(Exception):
    """The reason why a part has no record.

    Parameters
    ----------
    part : Part
        The part without a record.
    reason : str
        The message.

    See Also
    --------
    MissingDataError : The data of a part is missing.
    FailedError : A part raised an error, or its record cannot be read.

    Examples
    --------
    >>> from psilearn_lab.experiments import Outcome, Part, PartError
    >>> part = Part("toy", "A toy problem", lambda context: Outcome([]), {}, {})
    >>> error = PartError(part, "the data is missing")
    >>> error.part.name, str(error)
    ('toy', 'the data is missing')
    """

    def __init__(self, part: Part, reason: str) -> None:
        super().__init__(reason)
        self.part = part


class MissingDataError(PartError):
    """A part cannot run because its data is missing.

    Parameters
    ----------
    part : Part
        The part without a record.
    reason : str
        The message, with the missing files and their places.

    See Also
    --------
    FailedError : A part raised an error, or its record cannot be read.
    run : Run the parts of an experiment; it yields this error instead of a record.

    Examples
    --------
    >>> from psilearn_lab.experiments import MissingDataError, Outcome, Part
    >>> part = Part("toy", "A toy problem", lambda context: Outcome([]), {}, {})
    >>> str(MissingDataError(part, "toy.arff is missing"))
    'toy.arff is missing'
    """


class FailedError(PartError):
    """A part raised an error, or its record cannot be read.

    Parameters
    ----------
    part : Part
        The part without a record.
    reason : str
        The message; the error itself is the ``__cause__``.

    See Also
    --------
    MissingDataError : The data of a part is missing.
    run : Run the parts of an experiment; it yields this error instead of a record.

    Examples
    --------
    >>> from psilearn_lab.experiments import FailedError, Outcome, Part
    >>> part = Part("toy", "A toy problem", lambda context: Outcome([]), {}, {})
    >>> str(FailedError(part, "IndexError: index 3 is out of range"))
    'IndexError: index 3 is out of range'
    """
