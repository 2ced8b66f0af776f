"""The examples of the README and of the guides in ``docs``.

The Python blocks of a page run in order and share their names. A block that needs files or a device that a test does
not have carries a comment ``<!-- skip: reason -->`` on the line above it. The psilearn commands, in Bash blocks and in
running text, must exist with all their options.
"""

import re
import shlex
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

typer = pytest.importorskip("typer", reason="commands need the extra psilearn[app]")
pytest.importorskip("h5py", reason="the pages on experiments need the laboratory")
from psilearn.app.cli import app  # noqa: E402

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
SKIP = re.compile(r"<!-- skip: (?P<reason>\S.*?) -->\s*\Z")
INLINE_COMMAND = re.compile(r"`(psilearn [^`]+)`")
SEPARATORS = {"&&", "||", "|", ";"}


class Block(NamedTuple):
    """A fenced block of a page: its language, its code, the line before its code, and why it is not run, if so."""

    language: str
    code: str
    line: int
    skip_reason: str | None


def read_blocks(page):
    """Return the fenced blocks of a page in order."""
    text = page.read_text("utf-8")
    blocks = []
    for match in FENCE.finditer(text):
        skip = SKIP.search(text[: match.start()])
        line = text.count("\n", 0, match.start("code"))
        blocks.append(Block(match["language"], match["code"], line, skip["reason"] if skip else None))
    return blocks


def read_commands(page):
    """Return the psilearn commands of a page, each as a list of its arguments."""
    text = page.read_text("utf-8")
    lines = INLINE_COMMAND.findall(FENCE.sub("", text))
    for block in read_blocks(page):
        if block.language == "bash":
            lines += block.code.replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    commands = [list(part) for line in words for split, part in groupby(line, SEPARATORS.__contains__) if not split]
    return [command[1:] for command in commands if Path(command[0]).name == "psilearn"]


def check_command(arguments):
    """Raise an error if the command line does not have this command or one of its options."""
    command = typer.main.get_command(app)
    arguments = list(arguments)
    while arguments and not arguments[0].startswith("-") and hasattr(command, "commands"):
        found = command.get_command(typer.Context(command), arguments[0])
        assert found is not None, f"psilearn has no command {arguments[0]!r}"
        command = found
        arguments.pop(0)
    command.make_parser(typer.Context(command)).parse_args(arguments)


def page_name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if "```python" in page.read_text("utf-8")], ids=page_name)
def test_the_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in read_blocks(page):
        if block.language == "python" and block.skip_reason is None:
            # Blank lines in front give the lines in a traceback the numbers that they have in the page.
            exec(compile("\n" * block.line + block.code, page_name(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_commands_exist_with_their_options(page):
    for arguments in read_commands(page):
        check_command(arguments)


def test_an_unknown_command_or_option_is_detected():
    with pytest.raises(AssertionError, match="no command 'nothing'"):
        check_command(["nothing"])
    with pytest.raises(Exception, match="--nothing"):
        check_command(["demo", "--nothing"])


def test_a_page_is_read_as_blocks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "`psilearn data --verify`\n\n<!-- skip: needs a GPU -->\n```python\nx = 1\n```\n\n"
        "```bash\npython3 -m venv .venv && .venv/bin/psilearn demo  # a comment\n```\n",
        encoding="utf-8",
    )
    assert read_blocks(page)[0] == Block("python", "x = 1\n", 4, "needs a GPU")
    assert read_blocks(page)[1].skip_reason is None
    assert read_commands(page) == [["data", "--verify"], ["demo"]]
