"""An HTTP service and a page for saved models. Needs ``pip install 'psilearn[app]'``."""

from psilearn.app.serve.http_app import create_app
from psilearn.app.serve.served_models import ServedModel
from psilearn.app.serve.service_limits import Limits

__all__ = ["Limits", "ServedModel", "create_app"]
