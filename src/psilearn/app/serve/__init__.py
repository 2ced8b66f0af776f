"""An HTTP service and a page for saved models. Needs the extra ``app``.

Each public name is imported when it is first used, so ``import psilearn.app.serve`` does not load FastAPI.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psilearn.app.serve.http_app import create_app
    from psilearn.app.serve.served_models import ServedModel
    from psilearn.app.serve.service_limits import Limits

__all__ = ["Limits", "ServedModel", "create_app"]

_MODULE_BY_NAME = {
    "Limits": "service_limits",
    "ServedModel": "served_models",
    "create_app": "http_app",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from psilearn.utils import explain_missing

    with explain_missing("The service needs FastAPI and uvicorn: pip install 'psilearn[app]'."):
        return getattr(import_module(f"{__name__}.{_MODULE_BY_NAME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
