"""The output of ``psilearn data``."""

import pytest
from typer.testing import CliRunner

from psilearn.app.cli import app
from psilearn_lab.datasets.catalogue import DATASETS, RemoteFile


def run(*words, width=80):
    return CliRunner().invoke(app, ["data", *words], env={"COLUMNS": str(width), "TERM": "dumb"})


def write_files(name, content=None):
    """Write files of the expected sizes with other content into the data home."""
    for file in DATASETS[name].forms[0].files:
        file.target.parent.mkdir(parents=True, exist_ok=True)
        file.target.write_bytes(b"\0" * file.size if content is None else content)


def test_each_dataset_has_different_files():
    paths = [file.path for dataset in DATASETS.values() for form in dataset.forms for file in form.files]
    assert len(set(paths)) == len(paths) and not any(path.startswith("/") or ".." in path for path in paths)
    for dataset in DATASETS.values():
        for file in (file for form in dataset.forms if form.is_public for file in form.files):
            assert file.size and (file.sha256 or file.path == "mulan/bookmarks/bookmarks.arff")


def test_all_datasets_are_listed_within_80_columns(home):
    write_files("corel5k")
    write_files("delicious", b"truncated")
    result = run()
    assert result.exit_code == 0
    assert all(len(line) <= 80 for line in result.output.splitlines() if str(home) not in line)
    words = [line.split()[:2] for line in result.output.splitlines()]
    states = dict(pair for pair in words if pair and pair[0] in DATASETS)
    assert states == dict.fromkeys(DATASETS, "missing") | {"corel5k": "present", "delicious": "corrupt"}
    assert not (home / "usps").exists()
    assert "akorba/Structured_Approach_Label_Ranking" in "".join(line.strip() for line in result.output.splitlines())


def test_checksums_are_compared_on_request_only(home):
    write_files("corel5k")
    assert "corel5k: present" in run("corel5k").output
    result = run("corel5k", "--verify", width=200)
    assert result.exit_code == 1 and "corel5k: corrupt" in result.output and "its sha256 is" in result.output


def test_one_dataset_is_described(home):
    result = run("eurlex4k", width=1000)
    assert result.exit_code == 0
    for words in (DATASETS["eurlex4k"].citation, "not stated", "xc/eurlex4k/eurlex_train.txt: missing", str(home)):
        assert words in result.output
    assert DATASETS["bibtex"].forms[0].files[0].url in run("bibtex").output.splitlines()[-5].strip()


def test_a_dataset_without_a_split_has_one_number_of_rows(home):
    write_files("cold")
    result = run("cold", width=1000)
    assert result.exit_code == 0 and "cold: present" in result.output
    assert "\n2465 rows, 24 features, 4 outputs.\n" in result.output


@pytest.mark.data("label_ranking/cold.csv")
def test_the_checksum_of_a_real_file_agrees():
    result = run("cold", "--verify")
    assert result.exit_code == 0 and "label_ranking/cold.csv: present, 0.4 MB, sha256 agrees" in result.output


def test_an_unknown_name_lists_the_known_ones(home):
    result = run("mnist", width=200)
    assert result.exit_code == 2 and ", ".join(DATASETS) in result.output


def test_download_fetches_public_files(home, monkeypatch):
    downloaded = []

    def download(file):
        downloaded.append(file.path)
        file.target.parent.mkdir(parents=True, exist_ok=True)
        file.target.write_bytes(b"\0" * file.size)

    monkeypatch.setattr(RemoteFile, "download", download)
    result = run("--download", width=1000)
    assert result.exit_code == 0 and "mediamill cannot be downloaded automatically" in result.output
    public = [f.path for d in DATASETS.values() for form in d.forms if form.is_public for f in form.files]
    n_public = sum(any(form.is_public for form in dataset.forms) for dataset in DATASETS.values())
    assert downloaded == public and result.output.count(" present ") == n_public
    assert run("mediamill", "--download").exit_code == 1


def test_a_failed_download_is_reported(home, monkeypatch):
    def download(file):
        raise FileNotFoundError(f"{file.path} could not be downloaded")

    monkeypatch.setattr(RemoteFile, "download", download)
    result = run("bibtex", "--download")
    assert result.exit_code == 1 and "bibtex-train.arff could not be downloaded" in result.output
    assert run("--download").exit_code == 1


@pytest.mark.parametrize("words", [[], ["--verify"], ["bibtex"], ["--download"]])
def test_a_data_home_that_is_not_a_folder_is_reported(home, words):
    home.write_text("not a folder")
    result = run(*words, width=1000)
    assert result.exit_code == 1 and "is not a folder" in result.output and "Traceback" not in result.output
