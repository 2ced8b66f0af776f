"""The number of records of a file, counted without parsing them, to show how much of a long computation is done."""

from __future__ import annotations

import re
from pathlib import Path

BEGINNINGS = {
    ".mgf": re.compile(rb"\s*BEGIN IONS", re.IGNORECASE),
    ".msp": re.compile(rb"\s*NAME\s*:", re.IGNORECASE),
    ".ms": re.compile(rb"\s*>(?:ms2|collision|ramp)", re.IGNORECASE),
    ".txt": re.compile(rb"//\s*$"),
    ".massbank": re.compile(rb"//\s*$"),
}


def count_records(path: Path) -> int | None:
    """Return how many records a text file has, those of MS level 1 included; None for other formats and no file."""
    beginning = BEGINNINGS.get(path.suffix.lower())
    if beginning is None or not path.is_file():
        return None
    with path.open("rb") as file:
        return sum(beginning.match(line) is not None for line in file)
