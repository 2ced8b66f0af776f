"""The reasons why a part of an experiment has no record."""

from __future__ import annotations

from psilearn_lab.experiments.experiment import Part


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
