"""Pages with commands: their blocks run in order, on the files that the page itself writes."""

import shlex
from pathlib import Path

from typer.testing import CliRunner

from psilearn.app.cli import app
from tests.app.tables.example_tables import read_csv
from tests.test_documentation import read_blocks

DOCS = Path(__file__).parents[3] / "docs"


def run_blocks(page):
    """Run the Python blocks and the psilearn commands of a page, and return the Python names and the printed texts."""
    names, printed = {}, {}
    for block in read_blocks(page):
        if block.language == "python":
            exec(compile(block.code, page.name, "exec"), names)
        lines = block.code.replace("\\\n", " ").splitlines() if block.language == "bash" else []
        for program, *arguments in map(shlex.split, lines):
            if program == "psilearn":
                result = CliRunner().invoke(app, arguments)
                assert result.exit_code == 0, f"{arguments}: {result.output}"
                printed[arguments[0]] = result.output
    return names, printed


def test_the_blocks_of_getting_started_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, _ = run_blocks(DOCS / "getting_started.md")
    header, rows = read_csv("predicted.csv")
    assert header == ["sports", "politics", "music", "travel", "food"] and len(rows) == 400
    assert names["predicted"] == {name: [row[j] for row in rows[:3]] for j, name in enumerate(header)}


def test_the_blocks_of_the_guide_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, printed = run_blocks(DOCS / "command_line.md")
    assert "more_texts.csv: 60 rows" in printed["evaluate"] and "used for training" not in printed["evaluate"]
    header, rows = read_csv("predicted.csv")
    truth = [row[-1] for row in read_csv("wine.csv")[1]]
    assert header == ["grower"]
    assert sum(row == [word] for row, word in zip(rows, truth, strict=True)) > 170
    header, rows = read_csv("nearest.csv")
    assert header == ["row", "position", "id", "topics", "distance"] and len(rows) == 240
    assert {row[0] for row in read_csv("sets.csv")[1]} == {str(i) for i in range(1, 121)}
    for name in ("report.html", "evaluation.html"):
        assert "Evaluation on" in Path(name).read_text(encoding="utf-8")
