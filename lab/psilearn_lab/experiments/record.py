"""The stored results of an experiment: our values next to the paper's, and everything that led to them.

A record is JSON data: it is written as strict JSON and read without executing anything.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from psilearn._utils.files import read_json, write_json
from psilearn.utils import to_json_value
from psilearn_lab.experiments.result_rows import Metric, Row, check_types, is_finite

PACKAGES = ("psilearn", "numpy", "scipy", "scikit-learn")
OPTIONAL_PACKAGES = ("torch",)  # recorded only if they are installed


@dataclass(frozen=True)
class Record:
    """The stored result of a finished part of an experiment.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    part : str
        Name of the part.
    title : str
        Heading of the part in the report.
    seed : int
        Random seed.
    quick : bool
        Whether it was a quick run.
    config : dict
        Sizes and grids.
    key : str
        Hash of everything that determines the result. A part with another key is computed again.
    rows : list of Row
        One row per method, dataset and metric.
    notes : list of str
        Sentences that are shown below the table.
    figures : dict of str to str
        Captions of the pictures by the name of their PNG file, which is in the folder of the record.
    seconds : float
        Time that the part took.
    finished : str
        Date and time of the end, UTC.
    environment : dict of str to str
        Versions of packages, the operating system and the number of cores.
    trial : bool, default=False
        Whether it was a quick run on too little data to be compared with the paper.

    Raises
    ------
    TypeError
        If a field has another type.
    ValueError
        If a text is not a string, ``seconds`` is not a finite number, or a picture is not a PNG file in the folder.

    See Also
    --------
    load_records : Return the stored records of an experiment.
    run : Run the parts of an experiment and yield their records.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from psilearn_lab.experiments import Metric, Record, Row
    >>> record = Record(
    ...     experiment="toys", part="toy", title="A toy problem", seed=0, quick=False, config={"pairs": 50}, key="1f",
    ...     rows=[Row("Toy", "OEL", Metric("loss", "lower"), 0.5)], notes=[], figures={}, seconds=1.0,
    ...     finished="2026-01-01 12:00", environment={},
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     record.save(Path(folder))
    ...     Record.load(Path(folder, "toy.json")) == record
    True
    """

    experiment: str
    part: str
    title: str
    seed: int
    quick: bool
    config: dict[str, Any]
    key: str
    rows: list[Row]
    notes: list[str]
    figures: dict[str, str]
    seconds: float
    finished: str
    environment: dict[str, str]
    trial: bool = False

    def __post_init__(self) -> None:
        check_types(self, str, "experiment", "part", "title", "key", "finished")
        check_types(self, dict, "config", "figures", "environment")
        check_types(self, list, "rows", "notes")
        check_types(self, bool, "quick", "trial")
        check_types(self, int, "seed")
        texts = [*self.notes, *self.figures.values(), *self.environment.values()]
        if not all(isinstance(text, str) for text in texts) or not is_finite(self.seconds):
            raise ValueError("notes, captions and versions must be strings, and seconds must be a finite number.")
        for name in self.figures:
            if not isinstance(name, str) or not name.endswith(".png") or any(letter in "/\\:\0" for letter in name):
                raise ValueError(f"{name!r} is not the name of a .png file in the folder")

    def save(self, folder: Path) -> None:
        """Write ``<part>.json``; an interrupted write leaves the previous file unchanged.

        Parameters
        ----------
        folder : Path
            An existing folder.

        See Also
        --------
        load : Read a record.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from psilearn_lab.experiments import Record
        >>> record = Record("toys", "toy", "A toy problem", 0, False, {}, "1f", [], [], {}, 1.0, "2026-01-01 12:00", {})
        >>> with TemporaryDirectory() as folder:
        ...     record.save(Path(folder))
        ...     [path.name for path in Path(folder).iterdir()]
        ['toy.json']
        """
        write_json(folder / f"{self.part}.json", to_json_value(asdict(self)), indent=1)

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read a record.

        Parameters
        ----------
        path : Path
            A file that :meth:`save` wrote.

        Returns
        -------
        Record
            The stored record.

        Raises
        ------
        ValueError
            If the file is not a record; the message names the file.

        See Also
        --------
        save : Write a record.
        load_records : Return the stored records of an experiment.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from psilearn_lab.experiments import Record
        >>> record = Record("toys", "toy", "A toy problem", 0, False, {}, "1f", [], [], {}, 1.0, "2026-01-01 12:00", {})
        >>> with TemporaryDirectory() as folder:
        ...     record.save(Path(folder))
        ...     Record.load(Path(folder, "toy.json")).title
        'A toy problem'
        """
        try:
            content = read_json(path)
            rows = [Row(**{**row, "metric": Metric(**row["metric"])}) for row in content.pop("rows")]
            return cls(**content, rows=rows)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError) as error:
            reason = f"{type(error).__name__}: {error}".rstrip(".")
            raise ValueError(
                f"{path} is not the record of an experiment ({reason}). Remove it and run again."
            ) from error


def describe_environment() -> dict[str, str]:
    """Return the versions of Python and packages, the operating system and the number of cores."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # a checkout on the path that is not installed
            versions[name] = "unknown"
    for name in OPTIONAL_PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {"python": platform.python_version(), **versions, "system": platform.system(), "cores": str(os.cpu_count())}
