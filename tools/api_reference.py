"""Write the API reference: one page per public package, with every name of its ``__all__``.

The site calls :func:`write_pages` before it reads its sources. The pages are reStructuredText with autosummary tables.
A name that several packages export is described once, where its path is the shortest, and the others link to it.
"""

import inspect
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

from tools.docstrings import iter_public_modules

KINDS = ("Classes", "Functions", "Exceptions", "Data")


def public_modules() -> list[ModuleType]:
    """Return the public modules and subpackages of psilearn, without the command line, and of psilearn_chem."""
    modules = [module for module in iter_public_modules() if hasattr(module, "__all__")]
    return [module for module in modules if module.__name__ != "psilearn.app.cli"]


def exported_names(module: ModuleType) -> list[str]:
    """Return the names in ``__all__`` of a module that are not modules themselves, in alphabetical order."""
    names = [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    return sorted(names, key=lambda name: (name.lower(), name))


def described_paths() -> dict[str, str]:
    """Return, for the path of every public name such as ``psilearn.estimators.OEL``, the path of its description."""
    path_of_object: dict[tuple[str, int], str] = {}
    modules = sorted(public_modules(), key=lambda module: (module.__name__.count("."), module.__name__))
    described = {}
    for module in modules:
        for name in exported_names(module):
            path = f"{module.__name__}.{name}"
            described[path] = path_of_object.setdefault((name, id(getattr(module, name))), path)
    return described


def public_members(path: str) -> dict[str, list[str]]:
    """Return the public methods and properties that a class defines or inherits from a class of psilearn.

    The dict has the keys ``"methods"`` and ``"properties"``; a template of the site calls this function.
    """
    module, name = path.rsplit(".", 1)
    cls = getattr(import_module(module), name)
    found: dict[str, list[str]] = {"methods": [], "properties": []}
    owners = [owner for owner in cls.__mro__ if owner.__module__.startswith("psilearn")]
    for member in sorted({member for owner in owners for member in vars(owner)}):
        value = inspect.getattr_static(cls, member)
        if member.startswith("_") and member != "__call__":
            continue
        if isinstance(value, property | cached_property):
            found["properties"].append(member)
        elif _is_routine_of_psilearn(getattr(cls, member)):
            found["methods"].append(member)
    return found


def write_pages(folder: Path) -> None:
    """Write ``index.rst`` and one page per public package; remove pages of names that do not exist any more."""
    folder.mkdir(parents=True, exist_ok=True)
    described = described_paths()
    modules = public_modules()
    pages = {module.__name__: package_page(module, described) for module in modules} | {"index": index_page(modules)}
    for name, text in pages.items():
        _write_if_changed(folder / f"{name}.rst", text)
    for path in folder.glob("**/*.rst"):
        if path.stem not in (described if path.parent != folder else pages):
            path.unlink()


def package_page(module: ModuleType, described: dict[str, str]) -> str:
    """Return the page of one package."""
    lines = [
        *_heading(module.__name__, "="),
        f".. currentmodule:: {module.__name__}",
        "",
        f".. automodule:: {module.__name__}",
        "",
    ]
    paths = [f"{module.__name__}.{name}" for name in exported_names(module)]
    for kind in KINDS:
        here = [path for path in paths if described[path] == path and _kind(path) == kind]
        lines += _summary_table(kind, here)
    elsewhere = [path for path in paths if described[path] != path]
    if elsewhere:
        lines += _heading("Described in another package", "-")
        lines += [f"- ``{path.rsplit('.', 1)[1]}``: :obj:`{described[path]}`" for path in elsewhere]
    return "\n".join(lines) + "\n"


def index_page(modules: list[ModuleType]) -> str:
    """Return the page that lists the packages."""
    lines = [
        *_heading("API reference", "="),
        "Every public name of psilearn, generated from the docstrings. A name that is not listed here is private.",
        "",
        *(".. list-table::", "   :widths: 30 70", ""),
    ]
    for module in modules:
        summary = (module.__doc__ or "").strip().splitlines()[0].removeprefix("psilearn: ")
        lines += [
            f"   * - :doc:`{module.__name__}`",
            f"     - {summary[0].upper()}{summary[1:].replace('|', chr(92) + '|')}",
        ]
    lines += ["", ".. toctree::", "   :hidden:", "", *(f"   {module.__name__}" for module in modules)]
    return "\n".join(lines) + "\n"


def _summary_table(kind: str, paths: list[str]) -> Iterator[str]:
    if not paths:
        return
    yield from _heading(kind, "-")
    if kind == "Data":
        for path in paths:
            is_alias = get_origin(_find(path)) is not None  # a type, which autodata takes for a function
            yield from (f".. py:data:: {path}", "") if is_alias else (f".. autodata:: {path}", "   :no-value:", "")
        return
    template = {"Classes": "class.rst", "Exceptions": "class.rst", "Functions": "base.rst"}[kind]
    yield from (
        ".. autosummary::",
        "   :toctree: generated",
        f"   :template: autosummary/{template}",
        "   :nosignatures:",
        "",
    )
    yield from (f"   {path.rsplit('.', 1)[1]}" for path in paths)
    yield ""


def _find(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(import_module(module), name)


def _kind(path: str) -> str:
    exported = _find(path)
    if inspect.isclass(exported) and get_origin(exported) is None:
        return "Exceptions" if issubclass(exported, BaseException) else "Classes"
    return "Functions" if inspect.isroutine(exported) else "Data"  # types such as tuple[int] are callable, too


def _is_routine_of_psilearn(member: Any) -> bool:
    """Tell whether a member is a function of psilearn, not one that scikit-learn adds to a class."""
    return inspect.isroutine(member) and str(member.__module__).startswith("psilearn")


def _heading(title: str, character: str) -> list[str]:
    return [title, character * len(title), ""]


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, encoding="utf-8")
