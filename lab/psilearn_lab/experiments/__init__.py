"""The experiments of the paper: one module per table or figure, and one function that runs them.

Each module defines an :class:`Experiment`: its sizes and grids as JSON data, and a function per part. The command
``psilearn reproduce NAME`` runs it, and so does

>>> from psilearn_lab import experiments
>>> usps = experiments.find("usps")
>>> [part.name for part in usps.parts]
['usps', 'usps-grid']

followed by ``for record in experiments.run(usps, "results", log=print): ...``. To add a task of your own, write an
:class:`Experiment` and pass it to :func:`run`.
"""

from importlib import import_module

from psilearn_lab.experiments.experiment import (
    Context,
    Experiment,
    FailedError,
    MissingDataError,
    Outcome,
    Part,
    PartError,
)
from psilearn_lab.experiments.results import Metric, Record, Row
from psilearn_lab.experiments.runner import load_records, run

NAMES = (
    "usps",
    "multilabel-small",
    "multilabel-unlabeled",
    "multilabel-full",
    "multilabel-sets",
    "metabolites",
    "label-ranking",
    "smi2mol",
    "timing",
)


__all__ = [
    "NAMES",
    "Context",
    "Experiment",
    "FailedError",
    "Metric",
    "MissingDataError",
    "Outcome",
    "Part",
    "PartError",
    "Record",
    "Row",
    "find",
    "load_records",
    "run",
]


def find(name: str) -> Experiment:
    """Return an experiment of the paper by its name.

    Parameters
    ----------
    name : str
        One of ``psilearn_lab.experiments.NAMES``.

    Returns
    -------
    Experiment
        The experiment with its parts.

    Raises
    ------
    ValueError
        If there is no such experiment; the message lists the names.

    See Also
    --------
    run : Run the parts of an experiment.

    Examples
    --------
    >>> from psilearn_lab import experiments
    >>> experiments.find("multilabel-small").source
    'Table 5'
    """
    if name not in NAMES:
        raise ValueError(f"There is no experiment {name!r}; the experiments are {', '.join(NAMES)}.")
    module = import_module(f"psilearn_lab.experiments.{name.replace('-', '_')}")
    experiment: Experiment = module.EXPERIMENT
    return experiment
