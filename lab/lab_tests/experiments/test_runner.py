import csv
import os
import warnings

import pytest

from lab_tests.experiments.toys import LOSS, Counted, experiment, failing, missing_data, part
from psilearn_lab.experiments import FailedError, MissingDataError, Outcome, Record, Row, load_records, run, runner


def quiet(text):
    pass


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Picture:
    """A replacement of a matplotlib figure."""

    def __init__(self, content=b"\x89PNG"):
        self.content = content

    def savefig(self, file, **style):
        file.write(self.content)


def test_finished_parts_are_not_computed_again(tmp_path):
    counted, logged = Counted(), []
    toys = experiment(part(counted))
    first = list(run(toys, tmp_path, log=logged.append))
    before = files_of(tmp_path)
    assert list(run(toys, tmp_path, log=logged.append)) == first == load_records(toys, tmp_path)
    assert counted.calls == 1 and files_of(tmp_path) == before
    assert logged[:2] == ["toys, toy: starting", "thinking"] and "finished on" in logged[2]
    list(run(toys, tmp_path, log=quiet, fresh=True))
    assert counted.calls == 2


def test_a_part_without_pictures_is_run_again_once_matplotlib_is_installed(tmp_path, monkeypatch):
    counted = Counted()
    toys = experiment(part(counted))
    with monkeypatch.context() as without:
        without.setattr("psilearn_lab.experiments.experiment.find_spec", lambda name: None)
        (undrawn,) = run(toys, str(tmp_path), log=quiet)
        assert runner.NO_PICTURES in undrawn.notes
        list(run(toys, tmp_path, log=quiet))
        assert counted.calls == 1
    (drawn,) = run(toys, tmp_path, log=quiet)
    assert counted.calls == 2 and runner.NO_PICTURES not in drawn.notes


@pytest.mark.parametrize("name", ["../elsewhere", "a/b", "", "a b"])
def test_names_must_be_valid_file_names(name):
    with pytest.raises(ValueError, match="must consist of letters"):
        part(Counted(), name=name)
    with pytest.raises(ValueError, match="must consist of letters"):
        experiment(part(Counted()), name=name)


def test_parts_have_different_names():
    with pytest.raises(ValueError, match="different names"):
        experiment(part(Counted()), part(Counted()))


def test_a_changed_config_or_version_is_computed_again(tmp_path, monkeypatch):
    counted = Counted()
    list(run(experiment(part(counted)), tmp_path, log=quiet))
    (again,) = run(experiment(part(counted, n=7)), tmp_path, log=quiet)
    assert counted.calls == 2 and again.rows[0].value == 7
    assert not runner.is_current(again, experiment(part(counted)))
    monkeypatch.setattr(runner, "__version__", "99")
    list(run(experiment(part(counted, n=7)), tmp_path, log=quiet))
    assert counted.calls == 3


def test_seeds_and_quick_runs_have_their_own_folders(tmp_path):
    counted = Counted()
    toys = experiment(part(counted))
    values = {}
    for _ in range(2):
        for way in ({}, {"seed": 4}, {"quick": True}, {"quick": True, "seed": 4}):
            (record,) = run(toys, tmp_path, log=quiet, **way)
            values[record.seed, record.quick] = record.rows[0].value
    assert values == {(0, False): 100.0, (4, False): 100.4, (0, True): 5.0, (4, True): 5.4} and counted.calls == 4
    for seed in (0, 4):
        with (runner.results_folder(tmp_path, seed) / "toys" / "results.csv").open(encoding="utf-8") as file:
            assert [line["seed"] for line in csv.DictReader(file)] == [str(seed)]


def test_missing_data_and_failures_do_not_stop_other_parts(tmp_path):
    toys = experiment(part(missing_data, "gone"), part(failing, "wrong"), part(Counted(), "good"))
    missing, failed, good = run(toys, tmp_path, log=quiet)
    assert isinstance(missing, MissingDataError) and "toy.arff is missing" in str(missing)
    assert missing.part.name == "gone" and isinstance(missing.__cause__, FileNotFoundError)
    assert isinstance(failed, FailedError) and str(failed) == "IndexError: index 3 is out of range"
    assert isinstance(good, Record) and load_records(toys, tmp_path) == [good]


def test_only_one_part(tmp_path):
    one, other = Counted(), Counted()
    toys = experiment(part(one, "one"), part(other, "other"))
    assert [record.part for record in run(toys, tmp_path, log=quiet, only="other")] == ["other"]
    assert (one.calls, other.calls) == (0, 1)
    with pytest.raises(ValueError, match="its parts are one, other"):
        list(run(toys, tmp_path, log=quiet, only="third"))


def test_an_unreadable_record_is_computed_again(tmp_path):
    counted, logged = Counted(), []
    toys = experiment(part(counted))
    (before,) = run(toys, tmp_path, log=quiet)
    (tmp_path / "toys" / "toy.json").write_text('{"half": ')
    assert load_records(toys, tmp_path) == []
    (unreadable,) = runner.load_results(toys, tmp_path)
    assert isinstance(unreadable, FailedError) and "toy.json" in str(unreadable)
    (after,) = run(toys, tmp_path, log=logged.append)
    assert counted.calls == 2 and "computing again" in logged[0] and after.rows == before.rows


def test_an_unreadable_record_of_another_part_is_ignored(tmp_path):
    toys = experiment(part(Counted(), "one"), part(Counted(), "other"))
    list(run(toys, tmp_path, log=quiet))
    (tmp_path / "toys" / "one.json").write_text("no")
    (record,) = run(toys, tmp_path, log=quiet, only="other")
    assert record.part == "other"


def test_an_interruption_keeps_the_previous_files(tmp_path, monkeypatch):
    toys = experiment(part(Counted()))
    list(run(toys, tmp_path, log=quiet))
    before = files_of(tmp_path)

    write = os.write

    def write_half(file, content):
        write(file, content[: len(content) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", write_half)
    with pytest.raises(KeyboardInterrupt):
        list(run(toys, tmp_path, log=quiet, fresh=True))
    monkeypatch.undo()
    assert files_of(tmp_path) == before


def test_results_are_on_disk_before_a_record_is_yielded(tmp_path):
    toys = experiment(part(Counted(), "one"), part(Counted(), "other"))
    next(run(toys, tmp_path, log=quiet))
    assert sorted(path.name for path in (tmp_path / "toys").iterdir()) == ["one.json", "results.csv"]


def test_missing_pictures_are_made_again(tmp_path):
    counted = Counted()

    def draw(context):
        return Outcome(counted(context).rows, figures={"mse": (Picture(), "Errors")})

    toys = experiment(part(draw))
    (record,) = run(toys, tmp_path, log=quiet)
    picture = tmp_path / "toys" / "toy-mse.png"
    assert record.figures == {"toy-mse.png": "Errors"} and picture.read_bytes() == b"\x89PNG"
    picture.unlink()
    list(run(toys, tmp_path, log=quiet))
    assert picture.exists() and counted.calls == 2


def test_warnings_become_notes_once_each(tmp_path):
    def warn(context):
        for _ in range(3):
            warnings.warn("λ lies at the edge of its grid", UserWarning, stacklevel=1)
        return Outcome([], ["a note"])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (record,) = run(experiment(part(warn)), tmp_path, log=quiet)
    assert record.notes == ["a note", "Warning: λ lies at the edge of its grid"]


def test_a_nan_fails_and_names_the_row(tmp_path):
    toys = experiment(part(lambda context: Outcome([Row("Toy", "OEL", LOSS, float("nan"))])))
    (failed,) = run(toys, tmp_path, log=quiet)
    assert isinstance(failed, FailedError) and "Toy, OEL: value must be a finite number" in str(failed)
