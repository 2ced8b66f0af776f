"""The fuzzing harness itself: each kind of defect is found and attributed to its input, and runs are reproducible."""

import ctypes
import json
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("rdkit", reason="the targets need the extra psilearn[chem]")
pytest.importorskip("pyarrow", reason="the targets need the extra psilearn[chem]")

from psilearn_lab.fuzz.__main__ import main
from psilearn_lab.fuzz.campaign import Campaign
from psilearn_lab.fuzz.reseal import reseal
from psilearn_lab.fuzz.target import Target
from psilearn_lab.fuzz.targets import TARGETS
from psilearn_lab.fuzz.targets.seeds import texts
from psilearn_lab.fuzz.trees import Special, read_tree, write_tree
from psilearn_lab.fuzz.worker import read_seeds

ROOT = Path(__file__).parents[3]


def target(read):
    """Return a target whose reader is given the bytes of a file that begins with "good"."""

    def read_file(folder):
        content = (folder / "file.txt").read_bytes() if (folder / "file.txt").is_file() else b""
        if content.startswith(b"good"):
            return content
        return read(folder / "file.txt", content)

    return Target("broken", texts("file.txt", "good seed"), read_file)


def raise_clear_error(path, content):
    raise ValueError(f"{path} is damaged.")


def raise_without_name(path, content):
    raise ValueError("the file is damaged")


def raise_key_error(path, content):
    raise KeyError(f"{path}")


def crash(path, content):
    ctypes.string_at(0)


def use_memory(path, content):
    return len(bytearray(100 << 20))


def hang(path, content):
    time.sleep(60)


def test_a_reader_with_clear_errors_has_no_defect():
    summary = Campaign(target(raise_clear_error), 0).run(runs=100)
    assert (summary.attempts, summary.defects) == (100, 0)
    assert summary.clear_errors > 0
    assert summary.accepted > 0
    assert summary.clear_errors + summary.accepted == 100


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (raise_without_name, "the message does not name the file"),
        (raise_key_error, "undocumented exception: KeyError"),
        (crash, "ended by SIGSEGV"),
        (use_memory, "memory: 1"),
        (hang, "no result within 0.3 s"),
    ],
)
def test_each_kind_of_defect_is_found_and_reproduced(tmp_path, read, reason):
    limit = 0.3 if read is hang else 10.0
    summary = Campaign(target(read), 3, tmp_path / "failures", limit).run(runs=4)
    assert summary.attempts == 4  # a crash does not end the run
    assert summary.defects > 0
    assert summary.defects + summary.accepted == 4
    (defect,) = summary.places.values()
    assert reason in defect.reason
    again = Campaign(target(read), 0, tmp_path / "again", limit).reproduce(read_tree(Path(defect.path)))
    assert again.defects == 1
    by_number = Campaign(target(read), 3, tmp_path / "number", limit).run(runs=1, first=defect.index)
    assert by_number.defects == 1


def test_a_value_that_cannot_be_used_is_a_defect():
    broken = Target("use", texts("file.txt", "good"), lambda folder: 1, lambda value: [][value])
    with pytest.raises(RuntimeError, match="seed 0 cannot be used: IndexError"):
        Campaign(broken, 0).run(runs=1)


@pytest.mark.parametrize("name", ["mulan", "xc", "outputs-parquet", "model-csr"])
def test_inputs_are_determined_by_the_seed(tmp_path, name):
    TARGETS[name].write_seeds(tmp_path)
    seeds = read_seeds(tmp_path)

    def draw(seed):
        return [TARGETS[name].mutate(seeds, Random(f"{seed}:{i}")) for i in range(20)]

    assert draw(0) == draw(0)
    assert draw(0) != draw(1)


def test_trees_are_restored(tmp_path):
    tree = {"a": b"content", "folder/b": b"", **{special.name: special for special in Special}}
    write_tree(tmp_path / "tree", tree)
    assert read_tree(tmp_path / "tree") == tree


def test_command_line(tmp_path, capsys):
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.split() == list(TARGETS)
    assert main(["--runs", "20", "--seed", "5", "--json", str(tmp_path / "figures.json"), "xc", "record"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["target", "attempts", "clear", "errors", "accepted", "defects", "seed", "seconds"]
    figures = json.loads((tmp_path / "figures.json").read_text())
    for line, entry in zip(lines, figures, strict=True):
        name, attempts, clear, accepted, defects, seed, _ = line.split()
        assert [int(attempts), int(clear), int(accepted), int(defects), int(seed)] == [
            entry[key] for key in ("attempts", "clear_errors", "accepted", "defects", "seed")
        ]
        assert (name, attempts, seed) == (entry["target"], "20", "5")
    with pytest.raises(SystemExit):
        main(["--runs", "1", "no-such-target"])


def test_atheris_is_used_if_it_is_installed(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "atheris", None)
    assert main(["--atheris", "xc"]) == 2
    assert "atheris is not installed" in capsys.readouterr().err
    (tmp_path / "atheris.py").write_text(
        "def instrument_all(): pass\n"
        "def Setup(arguments, test): globals().update(test=test)\n"
        "def Fuzz(): test(b'2 3 2\\n0,1 2:0.5\\n 0:1\\n'); test(b''); print('done')\n"
    )
    monkeypatch.delitem(sys.modules, "atheris")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["--atheris", "xc"]) == 0
    assert "done" in capsys.readouterr().out
    sys.modules.pop("atheris", None)


def test_targets_run_without_defects(tmp_path):
    names = list(TARGETS)[::6]  # `python -m psilearn_lab.fuzz all` runs all of them
    command = [
        sys.executable,
        "-m",
        "psilearn_lab.fuzz",
        "--runs",
        "5",
        "--seed",
        "1",
        "--failures",
        str(tmp_path),
        *names,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 1 + len(names)


@pytest.mark.parametrize("name", ["model-dense", "candidates", "library"])
def test_resealed_folders_pass_the_checksums(tmp_path, name):
    (tmp_path / "seeds").mkdir()
    TARGETS[name].write_seeds(tmp_path / "seeds")
    tree = read_seeds(tmp_path / "seeds")[0]
    place = next(key for key in tree if key.endswith(".npy"))
    for changed, is_accepted in ((tree, False), (reseal(dict(tree)), True)):
        changed[place] = changed[place][:-1] + bytes([changed[place][-1] ^ 1])
        write_tree(tmp_path / "input", reseal(changed) if is_accepted else changed)
        if is_accepted:
            TARGETS[name].use(TARGETS[name].read(tmp_path / "input"))
        else:
            with pytest.raises(ValueError, match=r"SHA-256|damaged"):
                TARGETS[name].read(tmp_path / "input")
