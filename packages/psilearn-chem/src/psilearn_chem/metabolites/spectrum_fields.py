"""What tables of results say about a spectrum, by the fields of its file."""

from __future__ import annotations

from psilearn_chem.spectra import Spectrum

ID_FIELDS = ("feature_id", "scans", "scan_number")  # the first that is known identifies a spectrum in its file
TABLE_FIELDS = (*ID_FIELDS, "retention_time")  # the metadata that tables of results contain


def feature_id(spectrum: Spectrum) -> str:
    """Return the file's own identifier of the feature, or else the number of the scan; "" without one."""
    return next((spectrum.metadata[field] for field in ID_FIELDS if spectrum.metadata.get(field)), "")


def retention_seconds(spectrum: Spectrum) -> str:
    """Return the retention time in seconds; "" without one that is a number."""
    try:
        return f"{float(spectrum.metadata.get('retention_time', '')):.6g}"
    except ValueError:
        return ""


def precursor_text(spectrum: Spectrum) -> str:
    """Return the precursor m/z; "" without one."""
    return "" if spectrum.precursor_mz is None else f"{spectrum.precursor_mz:.10g}"
