"""Check the docstrings of the public names with numpydoc's validation.

Usage: ``python -m tools docstrings [package ...]``, where a package is for example ``psilearn.metrics``. Without one,
the library, the application and the chemistry package are checked, as far as they can be imported. Each violation is
printed on one line; the exit status is 1 if there is any.

Public are the names in ``__all__`` of a public package and, for a class, its methods and properties without a leading
underscore, and ``__call__``. A class, function or method needs every section; a property and a name of
``psilearn.utils`` need a summary.
"""

import inspect
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import ERROR_MSGS, validate

import psilearn
import psilearn.utils

ALL_CHECKS = frozenset(ERROR_MSGS) - {"ES01"}  # a summary that says everything needs no extended summary
PROPERTY_CHECKS = frozenset(code for code in ALL_CHECKS if code.startswith(("GL", "SS"))) - {"SS05"}


def iter_public_modules() -> Iterator[ModuleType]:
    """Yield the public modules and subpackages of psilearn and psilearn_chem, as far as they can be imported."""
    yield from _public_modules(psilearn)
    if all(find_spec(package) for package in ("psilearn_chem", "matchms", "rdkit")):
        yield from _public_modules(import_module("psilearn_chem"))


def _public_modules(module: ModuleType) -> Iterator[ModuleType]:
    """Yield a package, its public modules if it is psilearn itself, and its public subpackages, recursively."""
    yield module
    for info in iter_modules(getattr(module, "__path__", [])):
        if info.name == "app" and not find_spec("typer"):
            continue
        if not info.name.startswith("_") and (info.ispkg or module is psilearn):
            yield from _public_modules(import_module(f"{module.__name__}.{info.name}"))


def iter_public_objects(module: ModuleType) -> Iterator[Any]:
    """Yield the classes and functions of psilearn that a module exports, each class followed by its members."""
    for name in getattr(module, "__all__", ()):
        exported = getattr(module, name)
        if inspect.isclass(exported) or inspect.isfunction(exported):
            yield exported
        if inspect.isclass(exported):
            yield from iter_public_members(exported)


def iter_public_members(cls: type) -> Iterator[Any]:
    """Yield the methods and properties that a class defines or inherits from a class of psilearn."""
    seen: set[str] = set()
    for owner in cls.__mro__:
        for name in [name for name in vars(owner) if name not in seen]:
            seen.add(name)
            member = getattr(owner, name)
            if (not name.startswith("_") or name == "__call__") and _is_method_or_property(member):
                yield getattr(member, "__func__", member)  # a class method as a function


def check(documented: Any) -> Iterator[str]:
    """Yield one line for each violation in the docstring of a class, function, method or property."""
    result = validate(get_doc_object(documented))
    path = Path(result["file"] or "?")
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    for code, message in result["errors"]:
        if code in _required_checks(documented):
            yield f"{path}:{result['file_line']}: {_qualified_name(documented)}: {code} {message}"


def _required_checks(documented: Any) -> frozenset[str]:
    if isinstance(documented, (property, cached_property)) or _is_helper(documented):
        return PROPERTY_CHECKS
    if inspect.isclass(documented):
        return ALL_CHECKS if _has_named_parameters(documented) else ALL_CHECKS - {"PR01"}
    return ALL_CHECKS - {"YD01"} if _yields_nothing(documented) else ALL_CHECKS


def _is_helper(documented: Any) -> bool:
    """Tell whether psilearn.utils exports a name for packages that build on psilearn, where a summary is enough."""
    definition = _function_of(documented)
    exported = getattr(psilearn.utils, getattr(definition, "__qualname__", "").partition(".")[0], None)
    return exported is not None and getattr(exported, "__module__", None) == definition.__module__


def _has_named_parameters(cls: type) -> bool:
    """Tell whether a class has a constructor of its own: exceptions and protocols inherit ``(*args, **kwargs)``."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return inspect.isfunction(inspect.getattr_static(cls, "__init__")) and any(
        parameter.kind not in variadic for parameter in inspect.signature(cls).parameters.values()
    )


def _yields_nothing(function: Any) -> bool:
    """Tell whether a function is annotated as an iterator over None: a context manager without a value."""
    return str(inspect.signature(function).return_annotation).endswith("Iterator[None]")


def _is_method_or_property(member: Any) -> bool:
    return isinstance(member, (property, cached_property)) or inspect.isroutine(member)


def _function_of(documented: Any) -> Any:
    """Return the function behind a property; anything else as it is."""
    if isinstance(documented, property):
        return documented.fget
    return documented.func if isinstance(documented, cached_property) else documented


def _qualified_name(documented: Any) -> str:
    definition = _function_of(documented)
    return f"{getattr(definition, '__module__', '')}.{getattr(definition, '__qualname__', '')}"


def run_docstrings(packages: list[str]) -> int:
    """Print the violations of the named packages, or of all public ones, and return the exit status."""
    modules = [import_module(package) for package in packages] or iter_public_modules()
    exported = {_qualified_name(public): public for module in modules for public in iter_public_objects(module)}
    defined_here = [public for name, public in exported.items() if name.startswith("psilearn")]
    violations = [line for public in defined_here for line in check(public)]
    print(*violations, f"{len(defined_here)} docstrings checked, {len(violations)} violations.", sep="\n")
    return bool(violations)
