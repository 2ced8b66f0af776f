"""The page in a real browser: drawing, forms, tokens, narrow screens."""

import re
import time
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from psilearn import IOKR, KDE, OEL
from psilearn.app.cli import app as command_line
from psilearn.app.serve import ServedModel, create_app
from psilearn.app.serve.http_app import PAGE
from psilearn.kernels import Gaussian
from tests.app.serve.browser import find_browser, opened_browser, opened_page, running
from tests.app.serve.clients import rows_problem, text_problem


@pytest.fixture(scope="module")
def browser():
    find_browser()
    with opened_browser() as browser:
        yield browser


def digit_models():
    images = load_digits().data[:120] / 16
    X, Y = images[:, :32], images[:, 32:]
    estimators = {
        "IOKR": IOKR(Gaussian(0.2), Gaussian(0.2), alpha=1e-3),
        "KDE": KDE(Gaussian(0.2), Gaussian(0.2), alpha=1e-3, n_components=10),
        "OEL": OEL(Gaussian(0.2), Gaussian(0.2), alpha=1e-3, n_components=10),
    }
    return {name: model.fit(X, Y) for name, model in estimators.items()}


def test_files_of_the_page_load_nothing_from_elsewhere():
    for file in PAGE.iterdir():
        name, text = file.name, file.read_text(encoding="utf-8")
        assert not re.findall(r"(?:src|href|url\(|import)[^\n]{0,20}https?://", text), name
        assert "innerHTML" not in text and "eval(" not in text and " style=" not in text, name


def no_overflow(page):
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_digit_is_drawn_with_the_mouse_and_the_keyboard(browser):
    models = digit_models()
    app = create_app([ServedModel(name, model, {"image_width": 8}) for name, model in models.items()])
    with running(app) as url, opened_page(browser, url) as page:
        page.wait_for_selector("#board")
        box = page.locator("#board").bounding_box()
        page.mouse.move(box["x"] + 60, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 200, box["y"] + 40, steps=8)
        page.mouse.up()
        page.locator("#drawing-status", has_text="method").wait_for()
        upper = read_canvas(page, "board", 36, 4)
        assert upper.max() > 0.9
        for name in models:  # the page first completes what was drawn so far
            wait_until(
                page, lambda name=name: np.allclose(read_canvas(page, f"completion-{name}", 16, 4), upper, atol=0.01)
            )
        for name, model in models.items():
            lower = read_canvas(page, f"completion-{name}", 16, 8)[4:].ravel()
            candidates = model.candidates_.outputs
            assert np.abs(candidates - lower).max(axis=1).min() < 0.01  # one of the known lower halves
        page.click("#clear")
        page.focus("#board")
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Space"):
            page.keyboard.press(key)
        assert "pixels drawn" in page.get_attribute("#board", "aria-label")
        assert read_canvas(page, "board", 36, 4)[1, 2] > 0.9
        page.keyboard.press("Delete")
        assert read_canvas(page, "board", 36, 4)[1, 2] == 0
        page.set_viewport_size({"width": 400, "height": 900})
        assert no_overflow(page)


def wait_until(page, condition, seconds=15):
    """Fail if the condition does not become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        page.wait_for_timeout(50)


def read_canvas(page, name, cell, rows):
    """Return the gray values of an image that a canvas shows, 1 for black."""
    code = """([name, cell, rows]) => Array.from({length: 8 * rows}, (_, i) =>
        document.getElementById(name).getContext("2d").getImageData((i % 8) * cell + cell / 2,
        Math.floor(i / 8) * cell + cell / 2, 1, 1).data[0])"""
    return 1 - np.array(page.evaluate(code, [name, cell, rows])).reshape(rows, 8) / 255


def table_model(folder):
    """Return a model of a table with a column of numbers and one of texts."""
    lines = ["size,color,kind"] + [f"{i % 5},{'red' if i % 2 else 'blue'},{'a' if i % 2 else 'b'}" for i in range(20)]
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    arguments = ["fit", str(folder / "train.csv"), "--outputs", "kind", "-o", str(folder / "table")]
    assert CliRunner().invoke(command_line, arguments).exit_code == 0
    return ServedModel.load(folder / "table")


def test_rows_texts_and_tables_have_forms_and_a_token_is_asked_for(browser, tmp_path):
    X, _, rows = rows_problem()
    _, texts = text_problem()
    token = "0123456789abcdef"
    models = [ServedModel("rows", rows), ServedModel("words", texts), table_model(tmp_path)]
    app = create_app(models, token=token)
    with running(app) as url, page_with_token(browser, url, token) as page:
        page.fill("#input", ", ".join(map(str, X[0])))
        page.fill("#k", "3")
        page.click("#predict-form button")
        page.wait_for_selector("#outputs li")
        assert page.locator("#outputs li").count() == 3 and "in the set" in page.inner_text("#outputs")
        top = rows.predict_topk(X[:1], 3)
        shown = re.findall(r"distance ([\d.]+)", page.inner_text("#outputs"))
        assert shown == [f"{distance:.4f}" for distance in top.distances[0]]
        page.select_option("#model", "words")
        page.fill("#input", "tea")
        page.click("#predict-form button")
        page.locator("#outputs li:first-child", has_text="tea ").wait_for()
        page.select_option("#model", "table")
        page.fill("[data-column=size]", "x")
        page.click("#predict-form button")
        assert "is not a number" in page.inner_text("#predict-status") and not page.is_visible("#input")
        page.fill("[data-column=size]", "1")
        page.fill("[data-column=color]", "red")
        page.click("#predict-form button")
        page.locator("#outputs li:first-child", has_text="kind: a").wait_for()


@contextmanager
def page_with_token(browser, url, token):
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(url)
    page.fill("#token", token)
    page.click("#token-form button")
    page.wait_for_selector("#predict-form")
    yield page
    page.close()
