"""The page of stored records is up to date, has their values and marks trials."""

from pathlib import Path

import pytest

from psilearn_lab.experiments import Metric, Record, Row
from tools import reproduction_page

ROOT = Path(__file__).parents[2]


def test_the_reproduction_page_is_that_of_the_stored_records():
    page = reproduction_page.render_page(reproduction_page.load_all(ROOT / "lab" / "records"))
    assert (ROOT / "docs" / "reproduction.md").read_text("utf-8") == page, "run tools/reproduction_page.py again"


def test_a_page_of_records_has_their_values_and_marks_trials(tmp_path):
    rows = [
        Row("Toy", "IOKR", Metric("loss", "lower"), 0.5),
        Row("Toy", "OEL", Metric("loss", "lower"), 0.25, error=0.1),
    ]
    for part, trial in (("first", False), ("second", True)):
        record = Record(
            "toys", part, f"The {part} part", 3, trial, {}, "1f", rows, ["A|note"], {}, 61.0, "2026", {}, trial
        )
        record.save(tmp_path)
    text = reproduction_page.render_page(reproduction_page.load_all(tmp_path))
    assert "| OEL | **0.250 ± 0.100** |" in text
    assert "| paper |" not in text  # a column without any value
    assert r"- A\|note" in text
    assert text.count("Trial run") == 1
    assert text.index("Trial run") > text.index("The second part")


def test_a_folder_without_records_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="has no records"):
        reproduction_page.load_all(tmp_path)
