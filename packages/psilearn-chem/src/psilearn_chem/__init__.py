"""Metabolite identification: spectra, molecules, their kernels and datasets. Part of ``psilearn-chem``.

Each public name and subpackage is imported when it is first used, so ``import psilearn_chem`` loads neither RDKit nor
matchms.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psilearn_chem import metabolites as metabolites
    from psilearn_chem import molecules as molecules
    from psilearn_chem import spectra as spectra
    from psilearn_chem.metabolites import *  # noqa: F403
    from psilearn_chem.molecules import *  # noqa: F403
    from psilearn_chem.spectra import *  # noqa: F403
    from psilearn_chem.spectrum_kernels import PrecursorMass as PrecursorMass
    from psilearn_chem.spectrum_kernels import ProbabilityProduct as ProbabilityProduct
    from psilearn_chem.spectrum_kernels import spectrum_kernel as spectrum_kernel
    from psilearn_chem.subformula_kernels import SubformulaFeatures as SubformulaFeatures
    from psilearn_chem.subformula_kernels import SubformulaKernel as SubformulaKernel

__version__ = "0.1.0"
_NAMES_BY_MODULE = {
    "metabolites": "MetaboliteIdentifier Query Ranking ReferenceEvidence",
    "molecules": "Adduct CandidateLibrary FingerprintTable Fingerprints Formula MoleculeEdits MoleculeList "
    "graph_to_smiles molecule_graph molecule_graphs read_molecules",
    "spectra": "Cleaning Problem Spectrum SpectrumReadResult group_spectra iter_spectra merge_spectra read_spectra "
    "write_parquet",
    "spectrum_kernels": "PrecursorMass ProbabilityProduct spectrum_kernel",
    "subformula_kernels": "SubformulaFeatures SubformulaKernel",
}
_MODULE_BY_NAME = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}
__all__ = sorted([*_MODULE_BY_NAME, "metabolites", "molecules", "spectra"])


def __getattr__(name: str) -> Any:
    """Import a public name or subpackage when it is first used."""
    if name in _MODULE_BY_NAME:
        return getattr(import_module(f"{__name__}.{_MODULE_BY_NAME[name]}"), name)
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names and subpackages."""
    return __all__
