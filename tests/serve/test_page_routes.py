"""The page in a real browser: upload, ranking, choice, download, drawing, dark and narrow screens."""

import csv
import io
import json
import re
from contextlib import contextmanager
from urllib.parse import parse_qs, urlparse

import numpy as np
import pytest
from sklearn.datasets import load_digits

pytest.importorskip("fastapi", reason="the service needs the extra psilearn[serve]")

from psilearn import IOKR, KDE, OEL
from psilearn.kernels import Gaussian
from psilearn.serve import ServedIdentifier, ServedModel, create_app
from psilearn.serve.page_routes import read_page_files
from tests.serve.browser import find_browser, opened_browser, opened_page, running
from tests.serve.clients import rows_problem, text_problem


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
    for name, content in read_page_files().items():
        text = content.decode()
        assert not re.findall(r"(?:src|href|url\(|import)[^\n]{0,20}https?://", text), name
        assert "innerHTML" not in text and "eval(" not in text and " style=" not in text, name


def no_overflow(page):
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_upload_ranking_choice_and_download(browser, metabolites, tmp_path):
    served = ServedIdentifier.load(metabolites / "model", metabolites / "library", tmp_path / "jobs")
    with running(create_app([], identifier=served)) as url, opened_page(browser, f"{url}/?top=4&by=mass") as page:
        assert page.input_value("#top") == "4" and page.input_value("#by") == "mass"  # parameters of the address
        page.set_input_files("#file", str(metabolites / "spectra.mgf"))
        page.click("#rank")
        page.wait_for_selector("#candidates svg")
        assert page.inner_text("#rank-status") == "50 spectra ranked, 0 not ranked."
        confidences = [float(text) for text in page.locator("#spectra-rows td:nth-child(3)").all_inner_texts()]
        assert len(confidences) == 50 and confidences == sorted(confidences, reverse=True)

        address = parse_qs(urlparse(page.url).query)
        job = address["job"][0]
        assert address["top"] == ["4"] and address["by"] == ["mass"]
        content = json.loads((tmp_path / "jobs" / job / "result" / "results.json").read_bytes())
        compare_page_and_results(page, content)

        page.locator("#candidates input").nth(1).check()
        page.fill("#note", 'fits "best"')
        assert page.locator("#candidates li.chosen").count() == 1
        smiles = page.locator("#candidates li.chosen code").inner_text()
        with page.expect_download() as downloaded:
            page.click("[data-download=choices]")
        text = downloaded.value.path().read_text()
        chosen = [row for row in csv.DictReader(io.StringIO(text)) if row["smiles"]]
        assert [(row["smiles"], row["note"]) for row in chosen] == [(smiles, 'fits "best"')]
        with page.expect_download() as downloaded:
            page.click("[data-download=csv]")
        assert downloaded.value.path().read_bytes() == (tmp_path / "jobs" / job / "result" / "ranks.csv").read_bytes()

        page.reload()  # the shared address shows the same job, and the choice is kept
        page.locator("#spectra-rows button").last.click()
        page.wait_for_selector("#candidates li.chosen")
        page.set_viewport_size({"width": 400, "height": 900})
        assert no_overflow(page)
        page.check("#filter-unseen")
        assert "trained on" not in page.inner_text("#candidates")


def compare_page_and_results(page, content):
    """Compare all numbers that the page shows for the first spectra with the results of the job."""
    by_name = {spectrum["name"]: spectrum for spectrum in content["spectra"]}
    buttons = page.locator("#spectra-rows button")
    for i in range(buttons.count()):
        buttons.nth(i).click()
        spectrum = by_name[page.inner_text("#detail h3")]
        cards = page.locator("#candidates li").all_inner_texts()
        assert len(cards) == len(spectrum["candidates"])
        for card, candidate in zip(cards, spectrum["candidates"], strict=True):
            assert f"distance {candidate['distance']:.4f} · p-value {candidate['p_value']:.2f}" in card
            assert candidate["smiles"] in card and ("in the conformal set" in card) == candidate["in_set"]


def test_pasted_peaks_and_errors(browser, metabolites, tmp_path):
    served = ServedIdentifier.load(metabolites / "model", metabolites / "library", tmp_path / "jobs")
    with running(create_app([], identifier=served)) as url, opened_page(browser, url, width=400, dark=True) as page:
        page.wait_for_selector("#rank")
        page.click("#rank")
        assert "Choose a file" in page.inner_text("#rank-status")
        page.click("summary")
        page.fill("#peaks", "50 1\nno peak")
        page.click("#rank")
        assert "Line 2" in page.inner_text("#rank-status")
        page.fill("#peaks", "50.01 1\n60.02 20")
        page.fill("#precursor", "109.0648")
        page.fill("#adduct", "[M+H]+")
        page.keyboard.press("Enter")
        page.wait_for_selector("#candidates svg")
        assert page.inner_text("#detail h3") == "pasted" and no_overflow(page)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 26)"


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
        upper, completed = read_canvas(page, "board", 36, 4), read_canvas(page, "completion-OEL", 16, 8)
        assert upper.max() > 0.9 and np.allclose(completed[:4], upper, atol=0.01)
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
        page.set_viewport_size({"width": 400, "height": 900})
        assert no_overflow(page)


def read_canvas(page, name, cell, rows):
    """Return the gray values of an image that a canvas shows, 1 for black."""
    code = """([name, cell, rows]) => Array.from({length: 8 * rows}, (_, i) =>
        document.getElementById(name).getContext("2d").getImageData((i % 8) * cell + cell / 2,
        Math.floor(i / 8) * cell + cell / 2, 1, 1).data[0])"""
    return 1 - np.array(page.evaluate(code, [name, cell, rows])).reshape(rows, 8) / 255


def test_rows_and_texts_have_forms_and_a_token_is_asked_for(browser):
    X, _, rows = rows_problem()
    _, texts = text_problem()
    token = "0123456789abcdef"
    models = [ServedModel("rows", rows), ServedModel("words", texts)]
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
