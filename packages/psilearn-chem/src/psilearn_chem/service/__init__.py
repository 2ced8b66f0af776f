"""The part of the HTTP service that ranks spectra in jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psilearn.app.serve.server_process import ServiceSettings
    from psilearn_chem.service.job_runner import JobRunner


def load_extension(settings: ServiceSettings, path: Path) -> JobRunner:
    """Load a metabolite model and its library for the service."""
    from psilearn_chem.service.job_runner import JobRunner, ServedIdentifier

    if settings.library is None:
        raise ValueError(f"{path} is a metabolite model: name its library with --candidates.")
    return JobRunner(ServedIdentifier.load(path, settings.library, settings.jobs, settings.device), settings.limits)
