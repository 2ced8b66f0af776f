"""Import of pyarrow."""

from types import ModuleType


def import_pyarrow() -> tuple[ModuleType, ModuleType]:
    """Return ``pyarrow`` and ``pyarrow.parquet``."""
    import pyarrow
    from pyarrow import parquet

    return pyarrow, parquet
