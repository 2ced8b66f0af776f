"""The command ``psilearn reproduce``, with experiments that take no time."""

import errno
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from lab_tests.experiments.toys import Counted, experiment, failing, missing_data, part
from psilearn.app.cli import app
from psilearn_lab import experiments
from psilearn_lab.experiments.reproduce import check_output_folder


def interrupt(context):
    raise KeyboardInterrupt


@pytest.fixture
def toys(monkeypatch):
    """Replace the experiments of the paper; return the function of the part "one", which counts its calls."""
    counted = Counted()
    known = {
        "good": experiment(part(counted, "one"), part(Counted(), "two"), name="good"),
        "half": experiment(part(missing_data, "gone"), part(Counted(), "two"), name="half"),
        "gone": experiment(part(missing_data, "gone"), name="gone"),
        "wrong": experiment(part(failing, "bad"), part(Counted(), "two"), name="wrong"),
        "stop": experiment(part(Counted(), "two"), part(interrupt, "stop"), name="stop"),
    }
    register(monkeypatch, known)
    return counted


def register(monkeypatch, known):
    def find(name):
        if name not in known:
            raise ValueError(f"There is no experiment {name!r}; the experiments are {', '.join(known)}.")
        return known[name]

    monkeypatch.setattr(experiments, "NAMES", tuple(known))
    monkeypatch.setattr(experiments, "find", find)


def reproduce(tmp_path, *arguments):
    result = CliRunner().invoke(
        app, ["reproduce", *arguments, "--output", str(tmp_path / "out")], env={"COLUMNS": "100"}
    )
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_an_experiment_gives_a_table_files_and_a_report(toys, tmp_path):
    code, output = reproduce(tmp_path, "good")
    assert code == 0
    for words in ("Experiment good (Table 7)", "100.000 ± 0.500", "λ=1e-4", "- a note", "thinking", "report.html"):
        assert words in output
    assert "All 2 results are at least as good as the paper's." in output
    names = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*"))
    assert names == ["good/one.json", "good/results.csv", "good/two.json", "report.html"]


def test_finished_parts_are_kept_unless_fresh(toys, tmp_path):
    for words, calls in (((), 1), ((), 1), (("--fresh",), 2), (("--seed", "3"), 3), (("--quick",), 4), ((), 4)):
        assert reproduce(tmp_path, "good", *words)[0] == 0
        assert toys.calls == calls
    assert (tmp_path / "out" / "seed-3" / "report.html").exists()


def test_the_report_contains_all_finished_parts(toys, tmp_path):
    reproduce(tmp_path, "good")
    reproduce(tmp_path, "half", "--only", "two")
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Experiment good" in report and "Experiment half" in report and "Experiment gone" not in report
    assert "not run yet" in report


def test_a_quick_run_is_marked_and_has_its_own_folder(toys, tmp_path):
    code, output = reproduce(tmp_path, "good", "--quick")
    assert (
        code == 0 and "Trial run on little data: these results are not meaningful." in output and "pass" not in output
    )
    assert (tmp_path / "out" / "quick" / "report.html").exists() and not (tmp_path / "out" / "good").exists()


def test_a_quick_run_on_enough_data_has_verdicts(monkeypatch, tmp_path):
    shorter = replace(part(Counted(), "one"), trial=False)
    register(monkeypatch, {"good": experiment(shorter, name="good")})
    code, output = reproduce(tmp_path, "good", "--quick")
    assert code == 0 and "Trial run" not in output and "pass" in output
    assert "1 of 1 result is at least as good" in output
    report = (tmp_path / "out" / "quick" / "report.html").read_text(encoding="utf-8")
    assert "Trial run" not in report and "✓" in report


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("half",), 0, "Part gone: skipped. toy.arff is missing"),
        (("gone",), 1, "No part gave a result."),
        (("wrong",), 1, "Part bad: failed. IndexError: index 3 is out of range"),
        (("wrong",), 1, "Traceback"),
        (("wrong",), 1, "1 of 1 result is at least as good"),
        (("wrong", "--only", "two"), 0, "1 of 1 result is at least as good"),
        (("all", "--only", "one"), 0, "Experiment good"),
        (("nope",), 2, "the experiments are good, half, gone, wrong, stop"),
        (("good", "--only", "nope"), 2, "the parts are one, two"),
        (("all", "--only", "nope"), 2, "the parts are one, two, gone, bad, stop"),
        (("good", "--jobs", "0"), 2, "--jobs"),
        (("good", "--seed", "-1"), 2, "--seed"),
    ],
)
def test_exit_status(toys, tmp_path, arguments, status, message):
    code, output = reproduce(tmp_path, *arguments)
    flat = " ".join(output.replace("│", " ").split())
    assert code == status and message in flat, output
    assert (tmp_path / "out" / "report.html").exists() == (status < 2)


def test_all_continues_after_failures(toys, tmp_path, monkeypatch):
    register(monkeypatch, {name: experiments.find(name) for name in ("wrong", "gone", "half", "good")})
    code, output = reproduce(tmp_path, "all")
    assert code == 1 and toys.calls == 1 and "All 4 results" in output
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "index 3 is out of range" in report and "toy.arff is missing" in report


def test_interruption_keeps_finished_parts(toys, tmp_path):
    code, output = reproduce(tmp_path, "stop")
    assert code == 130 and "Finished parts are kept" in output
    assert (tmp_path / "out" / "stop" / "two.json").exists()
    assert "Experiment stop" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_an_unreadable_record_is_reported_and_computed_again(toys, tmp_path):
    reproduce(tmp_path, "good")
    (tmp_path / "out" / "good" / "one.json").write_text("{")
    assert "unreadable" in reproduce(tmp_path)[1]
    code, output = reproduce(tmp_path, "good")
    assert code == 0 and toys.calls == 2 and "Computing again" in output and "one.json is not the record" in output


def test_an_unreadable_record_of_another_part_is_in_the_report(toys, tmp_path):
    reproduce(tmp_path, "good")
    (tmp_path / "out" / "good" / "one.json").write_text("{")
    code, output = reproduce(tmp_path, "good", "--only", "two")
    assert code == 0 and "Computing again" not in output
    assert "is not the record of an experiment" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_without_a_name_the_experiments_are_listed(toys, tmp_path, monkeypatch):
    code, output = reproduce(tmp_path)
    assert code == 0 and output.count("not run") == 9 and not (tmp_path / "out").exists()
    reproduce(tmp_path, "good")
    output = reproduce(tmp_path)[1]
    assert output.count("finished on") == 2 and output.count("not run") == 7 and "computed again" not in output
    register(monkeypatch, {"good": experiment(part(Counted(), "one", n=6), name="good")})
    assert "would be computed again" in reproduce(tmp_path)[1]


def test_the_output_must_not_be_a_file(toys, tmp_path):
    (tmp_path / "out").write_text("")
    code, output = reproduce(tmp_path, "good")
    assert code == 2 and "--output" in output and "is a file" in " ".join(output.replace("│", " ").split())


def test_the_output_must_be_writable(toys, tmp_path, monkeypatch):
    def refuse(file, content):
        raise OSError(errno.EROFS, "Read-only file system", str(file))

    monkeypatch.setattr(type(tmp_path), "write_bytes", refuse)
    code, output = reproduce(tmp_path, "good")
    assert code == 2 and "is not writable" in " ".join(output.replace("│", " ").split())


def test_results_and_report_that_cannot_be_written(toys, tmp_path):
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    code, output = reproduce(tmp_path, "good")
    assert code == 1 and "The report could not be written" in output and "All 2 results" in output
    (tmp_path / "out" / "half").write_text("")
    code, output = reproduce(tmp_path, "half")
    assert code == 1 and "The results could not be written" in output


def test_on_a_terminal_one_line_shows_the_current_step(toys, tmp_path, capsys):
    from rich.console import Console

    from psilearn_lab.experiments.reproduce import Reproduction

    terminal = Console(stderr=True, force_terminal=True, width=80)
    assert Reproduction(tmp_path, progress_console=terminal).run([experiments.find("good")]) == 0
    captured = capsys.readouterr()
    assert "Experiment good" in captured.out and "Experiment good" not in captured.err
    assert "good, one" in captured.err or "starting" in captured.err or "thinking" in captured.err


def test_the_output_folder_may_be_new_but_not_in_a_file(tmp_path):
    check_output_folder(tmp_path / "new" / "folder", "--output")
    assert not any(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"^--output: .*file is a file; name a folder"):
        check_output_folder(tmp_path / "file" / "folder", "--output")


def test_a_full_disk_is_found(tmp_path, monkeypatch):
    def write_bytes(file, content):  # as on a disk that is full, which the superuser cannot write to either
        raise OSError(errno.ENOSPC, "No space left on device", str(file))

    monkeypatch.setattr(type(tmp_path), "write_bytes", write_bytes)
    with pytest.raises(OSError, match=r"^--output: the folder .* is not writable: No space left"):
        check_output_folder(tmp_path / "new" / "folder", "--output")
