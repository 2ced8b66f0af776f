"""The page in a real browser: upload, ranking, choice, download, dark and narrow screens."""

import csv
import io
import json
import re
from urllib.parse import parse_qs, urlparse

import pytest

from psilearn.app.serve import Limits, create_app
from psilearn_chem.service.job_runner import JobRunner, ServedIdentifier
from tests.app.serve.browser import find_browser, opened_browser, opened_page, running


@pytest.fixture(scope="module")
def browser():
    find_browser()
    with opened_browser() as browser:
        yield browser


def test_files_of_the_page_load_nothing_from_elsewhere():
    files = list(JobRunner.page.iterdir())
    assert {file.name for file in files} >= {"section.html", "spectra.js"}
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not re.findall(r"(?:src|href|url\(|import)[^\n]{0,20}https?://", text), file.name
        assert "innerHTML" not in text and "eval(" not in text and " style=" not in text, file.name


def no_overflow(page):
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.fixture(scope="module")
def spectra_service(metabolites, tmp_path_factory):
    """Return the address of a service that ranks spectra, and the folder of its jobs."""
    jobs = tmp_path_factory.mktemp("page") / "jobs"
    served = ServedIdentifier.load(metabolites / "model", metabolites / "library", jobs)
    with running(create_app([], extensions=[JobRunner(served, Limits())])) as url:
        yield url, jobs


def test_upload_ranking_choice_and_download(browser, metabolites, spectra_service):
    url, jobs = spectra_service
    with opened_page(browser, f"{url}/?top=4&by=mass") as page:
        page.wait_for_selector("#spectra:not([hidden])")
        assert page.input_value("#top") == "4" and page.input_value("#by") == "mass"  # parameters of the address
        page.set_input_files("#file", str(metabolites / "spectra.mgf"))
        page.click("#rank")
        page.locator("#candidates").scroll_into_view_if_needed()
        page.wait_for_selector("#candidates svg")
        assert page.inner_text("#rank-status") == "50 spectra ranked, 0 not ranked."
        shown = page.locator("#spectra-rows td:nth-child(3)").all_inner_texts()
        confidences = [float(text) for text in shown if text != "only candidate"]
        assert len(shown) == 50 and confidences == sorted(confidences, reverse=True)
        assert set(shown[len(confidences) :]) == {"only candidate"}  # last, because nothing was compared
        assert "50 spectra were found by mass" in page.inner_text("#problems")

        address = parse_qs(urlparse(page.url).query)
        job = address["job"][0]
        assert address["top"] == ["4"] and address["by"] == ["mass"]
        content = json.loads((jobs / job / "result" / "results.json").read_bytes())
        compare_page_and_results(page, content)

        page.locator("#spectra-rows button").nth(1).click()
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
        assert downloaded.value.path().read_bytes() == (jobs / job / "result" / "ranks.csv").read_bytes()

        page.reload()  # the shared address shows the same job, and the choice is kept
        page.locator("#spectra-rows button").nth(1).click()
        page.wait_for_selector("#candidates li.chosen")
        page.set_viewport_size({"width": 400, "height": 900})
        assert no_overflow(page)
        page.check("#filter-unseen")
        assert "trained on" not in page.inner_text("#candidates")


def compare_page_and_results(page, content):
    """Compare all numbers that the page shows for all spectra with the results of the job."""
    by_name = {spectrum["name"]: spectrum for spectrum in content["spectra"]}
    shown = page.evaluate("""() => [...document.querySelectorAll("#spectra-rows button")].map((button) => {
        button.click();
        return [document.querySelector("#detail h3").innerText,
                [...document.querySelectorAll("#candidates li")].map((card) => card.innerText)];
    })""")
    assert len(shown) == len(by_name) == 50
    for name, cards in shown:
        spectrum = by_name[name]
        assert len(cards) == len(spectrum["candidates"])
        for card, candidate in zip(cards, spectrum["candidates"], strict=True):
            assert f"distance {candidate['distance']:.4f} · p-value {candidate['p_value']:.2f}" in card
            assert candidate["smiles"] in card and ("in the conformal set" in card) == candidate["in_set"]


def drop_file(page, selector, name, content):
    """Drop a file on an element, as the mouse does."""
    code = """([name, content]) => {
        const data = new DataTransfer();
        data.items.add(new File([content], name));
        return data;
    }"""
    data = page.evaluate_handle(code, [name, content])
    for event in ("dragenter", "dragover", "drop"):
        page.dispatch_event(selector, event, {"dataTransfer": data})


def test_a_file_is_dropped(browser, metabolites, spectra_service):
    text = (metabolites / "spectra.mgf").read_text()
    two = "END IONS".join(text.split("END IONS")[:2]) + "END IONS\n"
    with opened_page(browser, f"{spectra_service[0]}/?by=mass") as page:
        page.wait_for_selector("#rank")
        drop_file(page, "h1", "aside.mgf", two)  # next to the area: nothing happens
        page.click("#rank")
        assert "Choose a file" in page.inner_text("#rank-status")
        drop_file(page, "#drop", "two.mgf", two)
        assert page.inner_text("#rank-status") == "two.mgf is ready." and "over" not in page.get_attribute(
            "#drop", "class"
        )
        page.click("#rank")
        page.wait_for_selector("#candidates li")
        assert page.inner_text("#rank-status") == "2 spectra ranked, 0 not ranked."
        drop_file(page, "#drop", "two.exe", two)
        page.click("#rank")
        assert "must end in" in page.inner_text("#rank-status")


def test_pasted_peaks_and_errors(browser, spectra_service):
    with opened_page(browser, spectra_service[0], width=400, dark=True) as page:
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
        page.wait_for_selector("#candidates li")
        assert page.inner_text("#detail h3") == "pasted" and no_overflow(page)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 26)"
