import re
from html.parser import HTMLParser

import pytest

from lab_tests.experiments.test_runner import Picture, quiet
from lab_tests.experiments.toys import LOSS, Counted, experiment, missing_data, part
from psilearn_lab.experiments import Outcome, Row, load_records, run
from psilearn_lab.experiments.report import Chapter, render_page, write_report
from psilearn_lab.experiments.tables import TRIAL_WARNING

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>&amp;"


class Elements(HTMLParser):
    """The tags of a page with their attributes; every opened tag must be closed."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.text = [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, name):
        return [attributes for tag, attributes in self.found if tag == name]


def chapter(toys, folder, missing=None, **ways):
    list(run(toys, folder, log=quiet, **ways))
    return Chapter(toys, load_records(toys, folder, **ways), missing or {}, folder / toys.name)


def drawing(context):
    rows = [
        Row("Toy", "IOKR", LOSS, 0.9, 0.1, 0.5, parameters={"alpha": 0.1}, seconds={"fit": 1.0}),
        Row("Toy", "OEL", LOSS, 0.4, 0.1, 0.5),
        Row("Toy", "SPEN", LOSS, paper=0.8, source="Table 2"),
    ]
    return Outcome(rows, ["a note"], {"mse": (Picture(), "Errors over λ")})


def test_a_chapter_contains_everything(tmp_path):
    text = render_page([chapter(experiment(part(drawing, alphas=[1e-4, 0.5])), tmp_path)])
    found = Elements(text)
    for words in (
        "Experiment toys",
        "Table 7",
        "First this.",
        "Part toy",
        "0.900 ± 0.100",
        "+0.400",
        "✗ falls short by 4.0 s.e.",
        "✓ pass",
        "quoted from Table 2",
        "λ=0.1",
        "a note",
        "1e-4, 0.5",
        "psilearn reproduce toys --only toy",
        "UTC",
        "numpy",
    ):
        assert words in found.text.replace("\N{NO-BREAK SPACE}", " "), words
    assert "1 of 2 results is at least as good as the paper's; 1 falls short." in found.text
    assert "<strong>0.400 ± 0.100</strong>" in text and "<strong>0.500</strong>" in text
    assert TRIAL_WARNING not in text and "another version" not in text


def test_the_page_is_self_contained(tmp_path):
    gone = experiment(part(missing_data), name="gone")
    report = tmp_path / "report.html"
    chapters = [chapter(experiment(part(drawing)), tmp_path), chapter(gone, tmp_path, {"toy": "https://example.org"})]
    write_report(chapters, report)
    found = Elements(report.read_text(encoding="utf-8"))
    anchors = {attributes["id"] for _, attributes in found.found if "id" in attributes}
    for _, attributes in found.found:
        if "src" in attributes:
            assert attributes["src"].startswith("data:image/png;base64,")
        if "href" in attributes:
            assert attributes["href"][0] == "#" and attributes["href"][1:] in anchors
    assert not {"script", "link", "iframe"} & {tag for tag, _ in found.found}
    assert not re.search(r"url\(|@import", report.read_text(encoding="utf-8"))


def test_tables_and_pictures_are_accessible(tmp_path):
    found = Elements(render_page([chapter(experiment(part(drawing)), tmp_path)]))
    assert {attributes["scope"] for attributes in found.all("th")} == {"col", "row"}
    assert [attributes["alt"] for attributes in found.all("img")] == ["Errors over λ"]
    assert found.all("html")[0]["lang"] == "en" and len(found.all("caption")) == len(found.all("table")) == 1


def test_texts_are_escaped(tmp_path):
    def hostile(context):
        row = Row(HOSTILE, HOSTILE, LOSS, 0.9, 0.1, 0.5, parameters={HOSTILE: HOSTILE}, seconds={HOSTILE: 1.0})
        quoted = Row(HOSTILE, HOSTILE, LOSS, paper=0.5, source=HOSTILE)
        return Outcome([row, quoted], [HOSTILE], {"x": (Picture(), HOSTILE)})

    toys = experiment(part(hostile, **{HOSTILE: {HOSTILE: [HOSTILE]}}))
    whole = chapter(toys, tmp_path, {"toy": HOSTILE, HOSTILE: HOSTILE})
    titled = type(toys)("a-b", HOSTILE, HOSTILE, HOSTILE, toys.parts)
    text = render_page([Chapter(titled, whole.records, whole.missing, whole.folder)])
    found = Elements(text)
    assert not found.all("script") and len(found.all("img")) == 1 and "onerror" not in found.all("img")[0]
    assert found.text.count("<script>alert(1)</script>") > 10
    assert {"a-b"} == {attributes["id"] for attributes in found.all("section")}


def test_a_trial_run_is_marked_and_not_judged(tmp_path):
    text = render_page([chapter(experiment(part(drawing)), tmp_path, quick=True)])
    assert text.count(TRIAL_WARNING) == 2 and "falls short by" not in text.split("<footer>")[0] and "✓" not in text
    assert "at least as good" not in text.split("<footer>")[0] and "--quick" in text


@pytest.mark.parametrize("chapters", [0, 1])
def test_a_report_without_records_gives_the_reasons(tmp_path, chapters):
    gone = experiment(part(missing_data))
    found = Elements(render_page([chapter(gone, tmp_path, {"toy": "no data: get it"})] * chapters))
    assert "No experiment has a result yet" in found.text and ("no data: get it" in found.text) == bool(chapters)


def test_a_record_of_other_settings_is_marked(tmp_path):
    old = chapter(experiment(part(Counted())), tmp_path)
    text = render_page([Chapter(experiment(part(Counted(), n=8)), old.records, {}, old.folder)])
    assert "another version of psilearn or with other settings" in text


def test_the_seed_is_shown(tmp_path):
    found = Elements(render_page([chapter(experiment(part(Counted())), tmp_path, seed=4)]))
    assert "--seed 4" in found.text


def test_a_missing_picture_is_noted(tmp_path):
    whole = chapter(experiment(part(drawing)), tmp_path)
    (tmp_path / "toys" / "toy-mse.png").unlink()
    assert "The picture toy-mse.png is missing" in render_page([whole])


def test_the_same_results_give_the_same_file(tmp_path):
    toys = experiment(part(drawing))
    assert render_page([chapter(toys, tmp_path)]) == render_page([chapter(toys, tmp_path)])
