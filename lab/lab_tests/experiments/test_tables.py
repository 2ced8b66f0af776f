import io
import re

import pytest
from rich.console import Console

from lab_tests.experiments.toys import F1, LOSS
from psilearn_lab.experiments import Metric, Row, tables

CHOSEN = {
    "input_kernel": "Gaussian(gamma=0.04)",
    "output_kernel": "Dice()",
    "alpha": 1e-4,
    "n_components": 98,
    "supervision": 0.15,
    "centred": True,
}
TABLE = [
    Row("USPS", "SPEN", LOSS, paper=0.801, source="Table 2"),
    Row("USPS", "IOKR", LOSS, 0.7508, 0.0107, 0.751, parameters=CHOSEN, seconds={"fit": 0.4, "decode": 61}),
    Row("Bibtex", "IOKR", F1, 35.2, 0.5, 35.9),
    Row("USPS", "OEL", LOSS, 0.7254, 0.011, 0.725),
    Row("Bibtex", "OEL₀", F1, 39.71, None, 39.7),
    Row("Bibtex", "OEL", F1, 39.73, 0.6, 39.7),
    Row("USPS", "OEL", F1, 3.0, paper=37.0, comparable=False),
]


def line(row, **options):
    return tables.make_tables([row], **options)[0].lines[0]


def render(rows, width, **options):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(tables.render_tables(rows, **options))
    return console.export_text()


def test_rows_are_grouped_by_dataset_and_metric():
    groups = [
        (table.dataset, table.metric, [line.method for line in table.lines]) for table in tables.make_tables(TABLE)
    ]
    assert groups == [
        ("USPS", LOSS, ["SPEN", "IOKR", "OEL"]),
        ("USPS", F1, ["OEL"]),
        ("Bibtex", F1, ["IOKR", "OEL₀", "OEL"]),
    ]


def test_the_best_of_each_column_is_marked_with_ties_as_render():
    usps, alone, bibtex = tables.make_tables(TABLE)
    assert [line.best_of_ours for line in usps.lines] == [False, False, True]
    assert [line.best_of_paper for line in usps.lines] == [False, False, True]
    assert not alone.lines[0].best_of_ours
    assert [line.best_of_ours for line in bibtex.lines] == [False, True, True]
    assert [line.best_of_paper for line in bibtex.lines] == [False, True, True]


def test_the_spread_of_a_metric_is_named_also_for_the_paper():
    tau = Metric("τ", "higher", spread="s.d.")
    row = Row("cold", "IOKR", tau, 0.09, 0.03, 0.097, 0.033)
    assert line(row).cells == ("IOKR", "0.090 ± 0.030", "0.097 ± 0.033", "−0.007", "falls short by 0.2 s.d.")
    assert tables.make_tables([row])[0].headings[1] == "ours ± s.d."
    both = render([*TABLE, row], 120)
    assert "ours ± s.d." in both and "ours ± s.e." in both
    with pytest.raises(ValueError, match="paper_error must be a finite number"):
        Row("cold", "IOKR", tau, 0.09, paper=0.1, paper_error=float("nan"))


def test_text_of_a_row():
    assert line(TABLE[1]).cells == ("IOKR", "0.751 ± 0.011", "0.751", "−0.0002", "pass")
    assert line(TABLE[1]).parameters == "γ_x=0.04 k_y=Dice() λ=1e-4 p=98 c=0.15 centred=True"
    assert line(TABLE[1]).seconds == "fit 0.4 s, decode 1 min 01 s"
    assert line(TABLE[0]).cells == ("SPEN", "", "0.801", "", "quoted")
    assert line(TABLE[4]).ours == "39.7"
    assert line(TABLE[6]).verdict == "not comparable"
    assert line(Row("d", "m", LOSS, 0.5)).cells == ("m", "0.500", "", "", "")
    assert line(Row("d", "m", LOSS, 0.5, paper=0.5)).cells == ("m", "0.500", "0.500", "+0.000", "pass")


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (0.6, 0.05, "falls short by 2.0 s.e."),
        (0.501, 0.05, "falls short by under 0.1 s.e."),
        (0.6, None, "falls short"),
        (0.6, 0.0, "falls short"),
        (0.4, 0.05, "pass"),
    ],
)
def test_a_shortfall_is_given_in_standard_errors(value, error, words):
    assert line(Row("d", "m", LOSS, value, error, 0.5)).verdict == words


def test_a_trial_run_has_no_verdicts():
    assert line(TABLE[3], with_verdicts=False).verdict == line(TABLE[3], with_verdicts=False).kind == ""
    assert line(TABLE[0], with_verdicts=False).verdict == "quoted"


@pytest.mark.parametrize(
    ("passed", "short", "words"),
    [
        (7, 1, "7 of 8 results are at least as good as the paper's; 1 falls short"),
        (1, 2, "1 of 3 results is at least as good as the paper's; 2 fall short"),
        (3, 0, "all 3 results are at least as good as the paper's"),
        (1, 0, "1 of 1 result is at least as good as the paper's"),
        (0, 1, "0 of 1 result is at least as good as the paper's; 1 falls short"),
        (0, 0, "no result can be compared with the paper's"),
    ],
)
def test_summary(passed, short, words):
    rows = [Row("d", "m", LOSS, 0.1, paper=0.2)] * passed + [Row("d", "m", LOSS, 0.3, paper=0.2)] * short
    others = [TABLE[0], TABLE[6], Row("d", "m", LOSS, 0.5)]
    assert tables.summarize([*rows, *others]) == words


@pytest.mark.parametrize("width", [80, 100])
def test_no_cell_is_cut_on_a_terminal(width):
    text = render(TABLE, width)
    for table in tables.make_tables(TABLE):
        assert table.title in text
        for row in table.lines:
            pattern = r"\s+".join(re.escape(cell) for cell in row.cells if cell)
            assert re.search(pattern, text), row.cells
    assert "SPEN: quoted from Table 2" in text and "γ_x=0.04" in text and "…" not in text


def test_text_in_brackets_is_not_markup():
    text = render([Row("[red]data[/red]", "[bold]m", LOSS, 1.0, parameters={"[x]": "[/y]"})], 80)
    assert "[red]data[/red]" in text and "[bold]m" in text and "[x]=[/y]" in text
