"""Imports of the libraries of the extra ``psilearn[chem]``; where one is missing, the error names the extra."""

from __future__ import annotations

import warnings
from types import ModuleType

from psilearn.utils import explain_missing

INSTALL = "pip install 'psilearn[chem]'"


def import_rdkit() -> ModuleType:
    """Return ``rdkit.Chem``. RDKit's own messages are silenced, because callers report what cannot be read."""
    with explain_missing(f"Molecules need RDKit: {INSTALL}."):
        from rdkit import Chem, rdBase
    rdBase.DisableLog("rdApp.*")
    module: ModuleType = Chem
    return module


def import_matchms_readers() -> ModuleType:
    """Return ``matchms.importing``, without warnings about formats that are not read here."""
    message = f"Reading .mgf, .msp and .mzml files needs matchms: {INSTALL}."
    with explain_missing(message), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        from matchms import importing
    module: ModuleType = importing
    return module


def import_pyarrow() -> tuple[ModuleType, ModuleType]:
    """Return ``pyarrow`` and ``pyarrow.parquet``."""
    with explain_missing(f"Reading and writing .parquet files needs pyarrow: {INSTALL}."):
        import pyarrow
        from pyarrow import parquet
    return pyarrow, parquet
