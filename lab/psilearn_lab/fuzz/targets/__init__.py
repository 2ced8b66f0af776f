"""All targets, by name: one per reader and loader."""

from __future__ import annotations

from psilearn_lab.fuzz.target import Target
from psilearn_lab.fuzz.targets import datasets, loaders, models, molecules, outputs, spectra, tables

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (datasets, outputs, spectra, molecules, models, loaders, tables)
    for target in module.TARGETS
}
