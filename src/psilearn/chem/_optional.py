"""Imports of the libraries of the extra ``psilearn[chem]``; where one is missing, the error names the extra."""

from __future__ import annotations

import warnings
from types import ModuleType

INSTALL = "pip install 'psilearn[chem]'"


def import_rdkit() -> ModuleType:
    """Return ``rdkit.Chem``. RDKit's own messages are silenced, because callers report what cannot be read."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise ImportError(f"Molecules need RDKit: {INSTALL}.") from error
    rdBase.DisableLog("rdApp.*")
    module: ModuleType = Chem
    return module


def import_matchms_readers() -> ModuleType:
    """Return ``matchms.importing``, without warnings about formats that are not read here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            from matchms import importing
    except ImportError as error:
        raise ImportError(f"Reading .mgf, .msp and .mzml files needs matchms: {INSTALL}.") from error
    module: ModuleType = importing
    return module


def import_pyarrow() -> tuple[ModuleType, ModuleType]:
    """Return ``pyarrow`` and ``pyarrow.parquet``."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(f"Reading and writing .parquet files needs pyarrow: {INSTALL}.") from error
    return pyarrow, parquet
