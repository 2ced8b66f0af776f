"""The registry of codecs, which encode values of a class as plain JSON data and arrays, and decode them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    from psilearn.io.encoding import Decoder, Encoder

ENTRY_POINTS = "psilearn.codecs"
OPTIONAL_CODECS = "psilearn.io.sklearn_codecs"  # of the library, but not loaded with it
PLAIN = (type(None), bool, int, float, str)

JSONObject = dict[str, Any]


@dataclass(frozen=True)
class Codec:
    """How the values of some classes are saved and loaded.

    A package declares the module that registers its codecs as an entry point. The module is imported when a class or
    kind that is not registered is saved or loaded for the first time::

        [project.entry-points."psilearn.codecs"]
        mypackage = "mypackage.codecs"

    Parameters
    ----------
    kind : str
        The name in saved models: the public package and the name of the class, such as "mypackage.Spectrum".
    classes : tuple of type
        The classes.
    encode : callable
        ``encode(value, encoder, where)`` returns a JSON object, in which values are encoded by ``encoder.encode(value,
        where)``, and arrays of numbers are replaced by their names, ``encoder.put(array)``. ``where`` describes the
        value in error messages.
    decode : callable
        ``decode(data, decoder)`` returns the value, with ``decoder.decode(data)`` and ``decoder.array(name)``. The data
        may come from an attacker: it must validate what it reads, take time and memory proportional to the data, and
        raise a ValueError otherwise.
    subclasses : bool, default=False
        Whether values of subclasses are encoded too.
    lists : bool, default=False
        Whether values are non-empty lists of objects of one of the classes.

    See Also
    --------
    register : Add a codec.
    register_class : Add a class that is saved by its parameters and fitted attributes, without a codec of its own.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from psilearn.io import Codec
    >>> codec = Codec(
    ...     "fractions.Fraction",
    ...     (Fraction,),
    ...     lambda value, encoder, where: {"numbers": [value.numerator, value.denominator]},
    ...     lambda data, decoder: Fraction(*data["numbers"]),
    ... )
    >>> codec.decode(codec.encode(Fraction(1, 3), None, ""), None)
    Fraction(1, 3)
    """

    kind: str
    classes: tuple[type, ...]
    encode: Callable[[Any, Encoder, str], JSONObject]
    decode: Callable[[JSONObject, Decoder], Any]
    subclasses: bool = False
    lists: bool = False


class Registry:
    """The known codecs, by class and by kind.

    Parameters
    ----------
    codecs : iterable of Codec, default=()
        The codecs that are registered first.
    group : str or None, default=None
        The group of entry points whose modules register further codecs.
    """

    def __init__(self, codecs: Iterable[Codec] = (), group: str | None = None) -> None:
        self._by_kind: dict[str, Codec] = {}
        self._by_class: dict[tuple[type, bool], Codec] = {}
        self._group = group
        self._import_errors: list[str] = []
        for codec in codecs:
            self.register(codec)

    def register(self, codec: Codec) -> None:
        """Add a codec.

        Parameters
        ----------
        codec : Codec
            The codec.

        Raises
        ------
        ValueError
            If its kind or one of its classes is registered already.

        See Also
        --------
        register_class : Add a class that is saved by its parameters and fitted attributes.

        Examples
        --------
        >>> from psilearn.io import Codec, register
        >>> register(Codec("mypackage.Spectrum", (Spectrum,), encode, decode))  # doctest: +SKIP
        """
        keys = [(cls, codec.lists) for cls in codec.classes]
        names = [cls.__name__ for cls, lists in keys if (cls, lists) in self._by_class]
        if codec.kind in self._by_kind or names:
            raise ValueError(f"{', '.join([repr(codec.kind), *names])}: a codec is already registered.")
        self._by_kind[codec.kind] = codec
        self._by_class.update(dict.fromkeys(keys, codec))

    def register_class(self, kind: str, cls: type, *, leave_out: Sequence[str] = ()) -> None:
        """Add a class that is encoded by its state.

        The state of a scikit-learn estimator, such as a kernel, consists of its parameters and its fitted attributes,
        and that of a dataclass of its fields. Fields in ``leave_out`` take their default when decoded.

        Parameters
        ----------
        kind : str
            The name in encoded data: the public package and the name of the class, such as "psilearn.kernels.Dice".
        cls : type
            A subclass of BaseEstimator, or a dataclass.
        leave_out : sequence of str, default=()
            The fields of a dataclass that are not encoded.

        Raises
        ------
        TypeError
            If the class is of another kind.

        See Also
        --------
        register : Add a codec for any class.

        Examples
        --------
        >>> from psilearn.io import register_class
        >>> register_class("mypackage.MyKernel", MyKernel)  # doctest: +SKIP
        """
        if issubclass(cls, BaseEstimator):
            self.register(Codec(kind, (cls,), _encode_estimator, partial(_decode_estimator, cls)))
        elif is_dataclass(cls):
            encode = partial(_encode_fields, [f.name for f in fields(cls) if f.init and f.name not in leave_out])
            self.register(Codec(kind, (cls,), encode, partial(_decode_fields, cls)))
        else:
            raise TypeError(f"{cls.__name__} is neither an estimator nor a dataclass: register a Codec.")

    def find(self, cls: type, *, lists: bool = False) -> Codec | None:
        """Return the codec of values of a class, or of lists of them; None if there is none."""
        is_known = issubclass(cls, (*PLAIN, np.generic)) or self._look_up(cls, False) or self._look_up(cls, True)
        if not is_known:
            self._import_applications()
        return self._look_up(cls, lists)

    def get(self, kind: str) -> Codec:
        """Return the codec of this kind."""
        if kind not in self._by_kind:
            self._import_applications()
        if kind not in self._by_kind:
            raise ValueError(f"{kind!r} is not registered with psilearn.{_advise(kind)}{self.import_errors}")
        return self._by_kind[kind]

    @property
    def import_errors(self) -> str:
        """Sentences about entry points that could not be imported."""
        return "".join(f" {error}." for error in self._import_errors)

    def _look_up(self, cls: type, lists: bool) -> Codec | None:
        codecs = ((base, self._by_class.get((base, lists))) for base in cls.__mro__)
        return next((codec for base, codec in codecs if codec and (codec.subclasses or base is cls)), None)

    def _import_applications(self) -> None:
        """Import the modules that register codecs of applications, once."""
        if self._group is None:
            return
        group, self._group = self._group, None
        import_module(OPTIONAL_CODECS)
        for entry_point in entry_points(group=group):
            try:
                entry_point.load()
            except (ImportError, AttributeError) as error:
                self._import_errors.append(f"{entry_point.value} could not be imported: {error}")


def _advise(kind: str) -> str:
    """Return a sentence that explains how a package registers its codecs."""
    package = kind.rpartition(".")[0]
    if not package:
        return ""
    return (
        f" Install or upgrade the package that provides {package}, or import {package}.codecs if it is run from source."
    )


def _encode_estimator(value: BaseEstimator, encoder: Encoder, where: str) -> JSONObject:
    fitted = {name: item for name, item in vars(value).items() if _is_fitted_name(name)}
    state = {**value.get_params(deep=False), **fitted}
    return {"state": {name: encoder.encode(item, f"{where}.{name}") for name, item in state.items()}}


def _decode_estimator(cls: type[BaseEstimator], data: JSONObject, decoder: Decoder) -> Any:
    state = {name: decoder.decode(item) for name, item in data["state"].items()}
    parameters = set(cls._get_param_names())
    fitted = {name: value for name, value in state.items() if name not in parameters}
    if not parameters <= set(state) or not all(map(_is_fitted_name, fitted)):
        raise ValueError(f"the state of {cls.__name__} consists of {', '.join(state)}")
    estimator = cls(**{name: state[name] for name in parameters})
    vars(estimator).update(fitted)
    return estimator


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _encode_fields(names: Sequence[str], value: Any, encoder: Encoder, where: str) -> JSONObject:
    return {"state": {name: encoder.encode(getattr(value, name), f"{where}.{name}") for name in names}}


def _decode_fields(cls: type, data: JSONObject, decoder: Decoder) -> Any:
    return cls(**{name: decoder.decode(item) for name, item in data["state"].items()})
