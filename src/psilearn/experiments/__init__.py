"""The paper's experiments: one module a table or figure, one runner.

Each module says in plain data which sizes and grids it uses, and holds an :class:`~psilearn.experiments.experiment.\
Experiment`. ``psilearn reproduce NAME`` runs it; so does

>>> from psilearn import experiments
>>> usps = experiments.find("usps")
>>> [part.name for part in usps.parts]
['usps']

and ``for record in experiments.run(usps, Path("results"), say=print): ...``. A task of your own is one more module of
the same form: write an Experiment and give it to :func:`run`.
"""

from importlib import import_module

from psilearn.experiments.experiment import Context, Experiment, Outcome, Part
from psilearn.experiments.record import Metric, Record, Row
from psilearn.experiments.runner import FailedError, MissingDataError, PartError, records, run

NAMES = (
    "usps",
    "multilabel-small",
    "multilabel-unlabeled",
    "multilabel-full",
    "metabolites",
    "label-ranking",
    "timing",
)

_MODULES = {"metabolites": "metabolite_identification"}

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
    "records",
    "run",
]


def find(name: str) -> Experiment:
    """Return the experiment of this name.

    Raises
    ------
    ValueError
        if there is none; it lists those that there are.
    """
    if name not in NAMES:
        raise ValueError(f"There is no experiment {name!r}; there are {', '.join(NAMES)}.")
    experiment: Experiment = import_module(
        f"psilearn.experiments.{_MODULES.get(name, name.replace('-', '_'))}"
    ).EXPERIMENT
    return experiment
