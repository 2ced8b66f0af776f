"""The guide of the command line: its blocks run in order, on the files that the page itself writes."""

import shlex
from pathlib import Path

from typer.testing import CliRunner

from psilearn.cli import app
from tests.tables.example_tables import read_csv
from tests.test_documentation import read_blocks

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"


def test_the_blocks_of_the_guide_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in read_blocks(PAGE):
        if block.language == "python":
            exec(compile(block.code, PAGE.name, "exec"), {})
        lines = block.code.replace("\\\n", " ").splitlines() if block.language == "bash" else []
        for line in lines:
            program, *arguments = shlex.split(line)
            assert program == "psilearn"
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, f"{line}: {result.output}"
    header, rows = read_csv("predicted.csv")
    truth = [row[-1] for row in read_csv("wine.csv")[1]]
    assert header == ["grower"]
    assert sum(row == [word] for row, word in zip(rows, truth, strict=True)) > 170
    header, rows = read_csv("nearest.csv")
    assert header == ["row", "position", "id", "topics", "distance"] and len(rows) == 240
    assert {row[0] for row in read_csv("sets.csv")[1]} == {str(i) for i in range(1, 121)}
    for name in ("report.html", "evaluation.html"):
        assert "Evaluation on" in Path(name).read_text(encoding="utf-8")
