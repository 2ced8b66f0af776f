"""The commands ``psilearn candidates`` and ``psilearn metabolites``."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from chem_tests.chemistry import smiles_list, spectra_of
from psilearn.app.cli import app
from psilearn_chem.spectra import write_parquet

run = CliRunner().invoke
TRAIN = ("metabolites", "train", "{w}/train.parquet", "--candidates", "{w}/lib", "-o", "{w}/m4")


@pytest.fixture(scope="module")
def spectra():
    chosen = np.random.default_rng(0).permutation(len(smiles_list()))[:90]
    return spectra_of([smiles_list()[i] for i in chosen])


@pytest.fixture(scope="module")
def folder(tmp_path_factory, spectra):
    path = tmp_path_factory.mktemp("commands")
    lines = [f"{smiles} m{i}" for i, smiles in enumerate([*smiles_list(), "broken("])]
    (path / "molecules.smi").write_text("\n".join(lines))
    write_parquet(spectra[:80], path / "train.parquet")
    write_parquet([replace(s, smiles=None) for s in spectra[80:90]], path / "mine.parquet")
    built = run(app, ["candidates", "build", str(path / "molecules.smi"), "-o", str(path / "lib"), "--jobs", "1"])
    assert built.exit_code == 0, built.output
    assert "1 that cannot be read" in built.output
    trained = run(
        app,
        [
            "metabolites",
            "train",
            str(path / "train.parquet"),
            "--candidates",
            str(path / "lib"),
            "-o",
            str(path / "model"),
            "--unlabeled",
            "50",
            "--calibration",
            "0.2",
        ],
    )
    assert trained.exit_code == 0, trained.output
    assert "validation loss" in trained.output
    return path


def rank(folder, *options, spectra="mine.parquet"):
    arguments = ["metabolites", "rank", str(folder / spectra), "--model", str(folder / "model"), "--candidates"]
    return run(app, [*arguments, str(folder / "lib"), "-o", str(folder / "ranks.csv"), *options])


def table(folder):
    with (folder / "ranks.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_rankings_are_written_to_a_table_and_a_page(folder):
    result = rank(folder, "--html", str(folder / "page.html"), "--top", "3")
    assert result.exit_code == 0, result.output
    rows = table(folder)
    assert {row["spectrum"] for row in rows} == {f"s{i}" for i in range(80, 90)}
    assert all(row["in_set"] in ("yes", "no") for row in rows)
    assert max(sum(row["spectrum"] == f"s{i}" for row in rows) for i in range(80, 90)) == 3
    first = rows[0]
    assert float(first["distance"]) >= 0
    assert first["found_by"] == f"formula {first['formula']}"
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.count("<section") == 10
    assert page.count("<svg") >= 20
    assert "<script" not in page


def test_spectra_that_cannot_be_ranked_are_reported_with_exit_status_1(folder, spectra):
    bad = [
        replace(spectra[80], formula="C99H99", precursor_mz=1288.78, smiles=None, name="unknown formula"),
        replace(spectra[81], adduct="[M+Na]+", name="wrong adduct"),
        replace(spectra[82], mz=[60.0], intensity=[1.0], name="one peak"),
        replace(spectra[83], precursor_mz=None, name="no precursor"),
    ]
    write_parquet([*bad, spectra[85]], folder / "bad.parquet")
    result = rank(folder, "--html", str(folder / "bad.html"), spectra="bad.parquet")
    assert result.exit_code == 1
    for name, message in (
        ("unknown formula", "C99H99"),
        ("wrong adduct", "trained on"),
        ("row 2", "min_peaks"),
        ("no precursor", "losses"),
    ):
        assert any(name in line and message in line for line in result.output.splitlines())
    assert {row["spectrum"] for row in table(folder)} == {"s85"}
    assert "Not ranked" in (folder / "bad.html").read_text(encoding="utf-8")
    assert rank(folder, "--any-adduct", "--by", "mass", spectra="bad.parquet").exit_code == 1


def test_all_candidates_in_a_window_of_masses_are_ranked(folder):
    assert rank(folder, "--top", "0", "--by", "mass", "--ppm", "20", "--ties", "pessimistic").exit_code == 0
    rows = table(folder)
    assert all(int(row["candidates"]) == sum(r["spectrum"] == row["spectrum"] for r in rows) for row in rows)
    assert rows[0]["found_by"].startswith("mass ")


def test_spectra_of_one_ion_are_merged(folder, spectra):
    twice = [replace(s, smiles=None) for s in spectra[80:83] for _ in range(2)]
    write_parquet(twice, folder / "twice.parquet")
    assert rank(folder, "--merge", "name", spectra="twice.parquet").exit_code == 0
    merged = table(folder)
    assert len({row["query"] for row in merged}) == 3
    write_parquet(twice[::2], folder / "once.parquet")
    assert rank(folder, spectra="once.parquet").exit_code == 0
    assert [row["smiles"] for row in merged] == [row["smiles"] for row in table(folder)]
    assert rank(folder, "--merge", "energy").exit_code == 2


def test_the_whole_conformal_set_and_a_table_of_sirius_are_written(folder):
    result = rank(folder, "--top", "1", "--whole-set", "--coverage", "0.99", "--tsv", str(folder / "ranks.tsv"))
    assert result.exit_code == 0 and "Conformal sets contain every candidate" in result.output
    rows = table(folder)
    assert all(int(row["set_size"]) == sum(r["spectrum"] == row["spectrum"] for r in rows) for row in rows)
    with (folder / "ranks.tsv").open(encoding="utf-8", newline="") as file:
        assert [row["smiles"] for row in csv.DictReader(file, delimiter="\t")] == [row["smiles"] for row in rows]


def test_ranking_on_a_device_writes_the_same_table(folder):
    pytest.importorskip("torch")
    tables = []
    for options in ((), ("--device", "cpu")):
        assert rank(folder, *options).exit_code == 0
        tables.append(table(folder))
    assert [row["smiles"] for row in tables[0]] == [row["smiles"] for row in tables[1]]


def test_a_library_is_embedded_and_shown(folder):
    before = rank(folder)
    rows = table(folder)
    assert before.exit_code == 0
    embedded = run(app, ["candidates", "embed", str(folder / "lib"), "--model", str(folder / "model")])
    assert embedded.exit_code == 0, embedded.output
    assert "dimensions as float32: 0.00 GB on disk, of which" in embedded.output
    assert rank(folder).exit_code == 0
    for a, b in zip(rows, table(folder), strict=True):
        assert float(a["distance"]) == pytest.approx(float(b["distance"]), abs=2e-6)
    shown = run(app, ["candidates", "show", str(folder / "lib"), "--verify"])
    assert "fingerprints morgan+maccs" in shown.output
    listed = run(app, ["candidates", "show", str(folder / "lib"), "--formula", "C8H10"])
    assert "Cc1ccc(C)cc1\tm0\tC8H10" in listed.output
    assert run(app, ["candidates", "show", str(folder / "lib"), "--mass", "106.07825"]).output == listed.output
    assert run(app, ["candidates", "show", str(folder / "lib"), "--formula", "C99"]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["candidates", "build", "absent.smi"], "not a file"),
        (["candidates", "build", "{w}/molecules.smi", "-o", "{w}/lib"], "already contains a library"),
        (["candidates", "build", "{w}/molecules.smi", "-o", "{w}/new", "--fingerprints", "x"], "kinds must be"),
        (["candidates", "show", "{w}"], "not a library of candidates"),
        (["candidates", "embed", "{w}/lib", "--model", "{w}/lib"], "not a saved model"),
        (["candidates", "embed", "{w}/lib", "--model", "{w}/model", "--device", "x"], "device must be None, 'cpu'"),
        (["metabolites", "train", "{w}/train.parquet", "--candidates", "{w}", "-o", "{w}/m2"], "not a library"),
        (
            ["metabolites", "train", "{w}/train.parquet", "--candidates", "{w}/lib", "-o", "{w}/lib"],
            "is not a saved model",
        ),
        (["metabolites", "train", "{w}/mine.parquet", "--candidates", "{w}/lib", "-o", "{w}/m3"], "No spectrum"),
        ([*TRAIN, "--polarity", "negative"], "No spectrum"),
        ([*TRAIN, "--polarity", "both signs"], "polarity must be"),
        (["metabolites", "rank", "{w}/mine.parquet", "--model", "{w}", "--candidates", "{w}/lib"], "not a saved model"),
        (["metabolites", "rank", "{w}/absent", "--model", "{w}/model", "--candidates", "{w}/lib"], "not a file"),
        (
            ["metabolites", "rank", "{w}/mine.parquet", "--model", "{w}/model", "--candidates", "{w}/lib", "--by", "x"],
            "by must",
        ),
        (
            [
                "metabolites",
                "rank",
                "{w}/mine.parquet",
                "--model",
                "{w}/model",
                "--candidates",
                "{w}/lib",
                "-o",
                "{w}/no/r.csv",
            ],
            "does not exist",
        ),
    ],
)
def test_errors_are_reported_in_one_line_with_exit_status_2(folder, arguments, message):
    result = run(app, [argument.format(w=folder) for argument in arguments])
    assert result.exit_code == 2, result.output
    assert "Error: " in result.output
    assert message in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("option", ["--output", "--html", "--tsv", "--mztab"])
def test_files_that_cannot_be_written_are_rejected_before_the_work(tmp_path, option):
    """The error is about the option, although neither the spectra, nor the model, nor the library exist."""
    arguments = ["metabolites", "rank", "absent.mgf", "--model", "absent", "--candidates", "absent"]
    arguments += ["--output", str(tmp_path / "ranks.csv")]
    for path, reason in ((tmp_path, "is a folder"), (tmp_path / "absent" / "x", "does not exist")):
        result = run(app, [*arguments, option, str(path)])
        assert result.exit_code == 2 and result.output.startswith(f"Error: {option}: ") and reason in result.output
    assert not any(tmp_path.iterdir())


def train_arguments(output, *options):
    """Return a training on files that do not exist, which fails as soon as it reads one."""
    return ["metabolites", "train", "absent.mgf", "--candidates", "absent", "-o", str(output), *options]


def test_a_model_that_cannot_be_saved_is_reported_before_the_training(folder, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").touch()
    for path, reason in (
        (tmp_path / "file", "is not a saved model"),
        (tmp_path / "file" / "model", "is not a folder"),
        (tmp_path / "notes", "is not a saved model"),
        (folder / "model", "pass --overwrite to replace it"),
    ):
        result = run(app, train_arguments(path))
        assert result.exit_code == 2 and reason in result.output and str(path) in result.output
    result = run(app, train_arguments(tmp_path / "new"))
    assert result.exit_code == 2 and "absent does not exist" in result.output and not (tmp_path / "new").exists()


def test_a_failed_training_keeps_the_old_model(folder):
    before = (folder / "model").read_bytes()
    result = run(app, train_arguments(folder / "model", "--overwrite"))
    assert result.exit_code == 2 and "absent does not exist" in result.output
    assert (folder / "model").read_bytes() == before
