"""The attacks on files: each kind of defect is found and attributed to its input, and runs are reproducible."""

import ctypes
import time

import numpy as np
import pytest

pytest.importorskip("rdkit", reason="the targets need psilearn-chem")
pytest.importorskip("pyarrow", reason="the targets need psilearn-chem")

from psilearn_lab.fuzz.__main__ import TARGETS, main
from psilearn_lab.fuzz.crafted import craft_files
from psilearn_lab.fuzz.files import FileAttack, Special, Target, attack, read_tree, write_tree
from psilearn_lab.fuzz.models import open_sealed, reseal, seal


def target(read, **options):
    """Return a target whose reader is given the bytes of a file that begins with "good"."""

    def read_file(folder):
        content = (folder / "file.txt").read_bytes() if (folder / "file.txt").is_file() else b""
        return content if content.startswith(b"good") and len(content) < 4000 else read(folder / "file.txt", content)

    return Target("broken", lambda: [{"file.txt": b"good seed"}], read_file, craft=lambda seeds, size: (), **options)


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


def use_time(path, content):
    start = time.process_time()
    while time.process_time() < start + 1.2:
        pass


def hang(path, content):
    time.sleep(60)


def test_a_reader_with_clear_errors_has_no_defect():
    tally = attack(target(raise_clear_error), runs=100)
    assert (tally.attempts, tally.defects) == (100, 0)
    assert tally.clear_errors > 0 and tally.accepted > 0
    assert tally.clear_errors + tally.accepted == 100


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (raise_without_name, "the message does not name the file"),
        (raise_key_error, "undocumented exception: KeyError"),
        (crash, "ended by SIGSEGV"),
        (use_memory, "memory: 1"),
        (use_time, "time: 1"),
        (hang, "no result within 0.5 s"),
    ],
)
def test_each_kind_of_defect_is_found_and_reproduced(tmp_path, read, reason):
    limit = 0.5 if read is hang else 20.0
    tally = attack(target(read), 3, runs=4, failures=tmp_path / "failures", time_limit=limit)
    assert tally.attempts == 4  # a crash does not end the run
    assert tally.defects > 0 and tally.defects + tally.accepted == 4
    (text,) = tally.places.values()
    assert reason in text
    (path,) = (tmp_path / "failures").iterdir()
    again = attack(target(read), runs=1, stored=read_tree(path), time_limit=limit)
    index = int(path.name.rpartition("-")[2])
    by_number = attack(target(read), 3, runs=1, first=index, failures=tmp_path / "again", time_limit=limit)
    assert again.defects == by_number.defects == 1


def test_a_value_that_cannot_be_used_is_a_defect():
    broken = Target("use", lambda: [{"file.txt": b"good"}], lambda folder: 1, lambda value: [][value])
    with pytest.raises(RuntimeError, match=r"seed 0 of use.*IndexError"):
        attack(broken, runs=1)


@pytest.mark.parametrize("name", ["load-bibtex", "molecules-smi", "outputs-parquet", "model-csr"])
def test_inputs_are_determined_by_the_seed(name):
    first, second, other = (FileAttack(TARGETS[name], seed, 1000) for seed in (0, 0, 1))
    second.__dict__["seeds"] = other.__dict__["seeds"] = first.seeds
    n = len(first.crafted)
    assert [first[i] for i in range(n, n + 20)] == [second[i] for i in range(n, n + 20)]
    assert [first[i] for i in range(n, n + 20)] != [other[i] for i in range(n, n + 20)]


def test_trees_are_restored(tmp_path):
    tree = {"a": b"content", "folder/b": b"", **{special.name: special for special in Special}}
    write_tree(tmp_path / "tree", tree)
    assert read_tree(tmp_path / "tree") == tree


@pytest.mark.parametrize("suffix", [".parquet", ".npy", ".npz", ".json", ".mzML", ".csv"])
def test_crafted_files_are_small(suffix):
    seeds = {".parquet": "molecules-parquet", ".npy": "outputs-npy", ".npz": "stored-arrays", ".mzML": "spectra-mzml"}
    content = b"1,2\n3,4\n"
    if suffix in seeds:
        (content,) = next(iter(TARGETS[seeds[suffix]].seeds())).values()
    crafted = list(craft_files(suffix, content, (), 4096))
    assert len(set(crafted)) >= 10
    assert all(len(part) < 200_000 for part in crafted)


def test_command_line(capsys):
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.split() == list(TARGETS)
    options = ["--runs", "20", "--seed", "5", "--size", "1000"]
    assert main(["load-cold", "record", *options]) == 0
    header, _, *lines = capsys.readouterr().out.splitlines()
    assert header == "| attacked | attempts | clear errors | accepted | defects | seed |"
    for line, target in zip(lines, ["load-cold", "record"], strict=True):
        name, attempts, *kinds, seed = (cell.strip() for cell in line.strip("|").split("|"))
        assert (name, attempts, seed) == (target, "20", "5")
        assert sum(map(int, kinds)) == 20
    with pytest.raises(SystemExit):
        main(["--runs", "1", "no-such-target"])


@pytest.mark.parametrize("name", sorted(TARGETS)[::4])  # `python -m psilearn_lab.fuzz` runs all of them
def test_targets_run(name, tmp_path):
    crafted = len(FileAttack(TARGETS[name], 1, 500).crafted)
    tally = attack(TARGETS[name], 1, first=crafted, runs=8, size=500, failures=tmp_path)
    assert (tally.attempts, tally.places) == (8, {})


def test_changed_shards_are_read_when_their_checksums_are_recomputed(tmp_path):
    """Otherwise no attack would get beyond the checksums."""
    tree = next(iter(TARGETS["candidates"].seeds()))
    header, data = open_sealed(tree["shard-00000.safetensors"])
    numbers = np.frombuffer(data).copy()  # all arrays are float64
    numbers += 1
    changed = reseal({**tree, "shard-00000.safetensors": seal(header, numbers.tobytes())})
    for name, content in changed.items():
        (tmp_path / name).write_bytes(content)
    outputs = TARGETS["candidates"].read(tmp_path).outputs
    (tmp_path / "manifest.json").write_bytes(tree["manifest.json"])
    with pytest.raises(ValueError, match="not the shard that the manifest"):
        TARGETS["candidates"].read(tmp_path)
    assert len(outputs) == 12 and outputs.min() > -3
