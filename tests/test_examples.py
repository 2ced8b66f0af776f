"""The examples of the gallery run without warnings, draw figures and have the structure that sphinx-gallery needs."""

import ast
import re
import runpy
import socket
import warnings
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(ROOT.glob("*/*.py"))
FOLDERS = sorted({ROOT, *(path.parent for path in EXAMPLES)})
MIN_TEXT_CELLS = 2


def example_name(path):
    return path.relative_to(ROOT).as_posix()


@pytest.fixture
def offline_pyplot(monkeypatch, tmp_path):
    """Return pyplot without a window, in an empty folder and without a network."""

    def refuse(*args, **kwargs):
        raise OSError("an example must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with matplotlib.rc_context():
        yield plt
        plt.close("all")


@pytest.mark.parametrize("path", EXAMPLES, ids=example_name)
def test_an_example_runs_and_draws_labeled_axes(path, offline_pyplot, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        runpy.run_path(str(path), run_name="__main__")
    figures = [offline_pyplot.figure(number) for number in offline_pyplot.get_fignums()]
    assert figures
    assert any(ax.get_xlabel() and ax.get_ylabel() for figure in figures for ax in figure.axes)
    assert not list(tmp_path.iterdir()), "an example leaves files behind"


@pytest.mark.parametrize("path", EXAMPLES, ids=example_name)
def test_an_example_has_a_title_and_text_cells(path):
    text = path.read_text("utf-8")
    docstring = ast.get_docstring(ast.parse(text))
    title, underline, blank, description = docstring.split("\n", 3)
    assert underline == "=" * len(title)
    assert blank == ""
    assert len(description) > 100
    assert path.name.startswith("plot_")
    assert len(re.findall(r"^# %%\n# \S", text, re.MULTILINE)) >= MIN_TEXT_CELLS
    assert "random_state" in text or "default_rng(" in text


@pytest.mark.parametrize("path", EXAMPLES, ids=example_name)
def test_the_headings_of_an_example_are_underlined_in_full(path):
    headings = re.findall(r"^# (\S.*)\n# (-{3,})$", path.read_text("utf-8"), re.MULTILINE)
    assert all(len(title) == len(underline) for title, underline in headings), headings


@pytest.mark.parametrize("path", EXAMPLES, ids=example_name)
def test_an_example_downloads_nothing(path):
    names = re.findall(r"\bfetch_\w+|\burlopen\b|\bpsilearn\.datasets\b|\bPSILEARN_DATA\b", path.read_text("utf-8"))
    assert not names


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_of_examples_has_a_header(folder):
    title, underline, blank, text = (folder / "GALLERY_HEADER.rst").read_text("utf-8").split("\n", 3)
    assert underline == ("=" if folder == ROOT else "-") * len(title)
    assert blank == ""
    assert text.strip()


def test_titles_are_unique():
    titles = [ast.get_docstring(ast.parse(path.read_text("utf-8"))).split("\n")[0] for path in EXAMPLES]
    assert len(titles) == len(set(titles))
