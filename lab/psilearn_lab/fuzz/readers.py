"""All readers of files as targets: seed files, the call, and what a reader needs beyond the usual limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import h5py
import matchms.importing
import numpy as np
import pyarrow
import pyteomics.xml
from pyarrow import parquet
from scipy import sparse

from psilearn.app.tables import read_table
from psilearn.embedding import OutputStream
from psilearn.kernels import Linear
from psilearn_chem.molecules import read_molecules
from psilearn_chem.spectra import read_spectra
from psilearn_lab.datasets import load
from psilearn_lab.datasets.catalogue import DATASETS, Form, RemoteFile
from psilearn_lab.experiments import Context, Metric, Record, Row
from psilearn_lab.fuzz.files import Target, Tree, written

SEEDS = Path(__file__).with_name("seeds")  # small valid files
ROWS = np.arange(24.0).reshape(8, 3)
ARFF = b"@attribute|@data|{0 1}|'|{|}|?|-1e309"
assert matchms.importing  # imported before the process is forked


def stored(*patterns: str, name: str = "") -> Callable[[], list[Tree]]:
    """Return a function that returns the seed files of patterns, each alone and under one name."""
    paths = [path for pattern in patterns for path in sorted(SEEDS.glob(pattern))]
    return lambda: [{name or path.name: path.read_bytes()} for path in paths]


def text_target(name: str, patterns: str, read: Callable[[Path], Any], tokens: bytes = b"", **options: Any) -> Target:
    """Return a target whose seeds are stored files, all read under the name of the first."""
    seeds = stored(*patterns.split())
    file = next(iter(seeds()[0]))
    given = stored(*patterns.split(), name=file)
    return Target(
        name, given, lambda folder: read(folder / file), tokens=tuple(tokens.split(b"|")) if tokens else (), **options
    )


def parquet_tables(*tables: Any, name: str) -> Iterator[Tree]:
    """Yield tables as Parquet files with several options."""
    plain = {"compression": "none", "use_dictionary": False}
    for table in tables:
        for options in (plain, {"compression": "snappy"}, {"data_page_version": "2.0"}):
            yield written(partial(parquet.write_table, table, **options), name)


def binary_target(
    name: str, file: str, seeds: Callable[[], Iterable[Tree]], read: Callable[[Path], Any], **options: Any
) -> Target:
    """Return a target whose seeds are written by a library."""
    return Target(name, seeds, lambda folder: read(folder / file), **options)


def _read_both(path: Path) -> Any:
    """Read spectra with errors raised, and again with errors skipped."""
    try:
        return read_spectra(path)
    finally:
        read_spectra(path, errors="skip")


def _keep_vocabulary() -> None:
    """Load the vocabulary of mzML once per process, and not for each file."""
    pyteomics.xml.load_psims = cache(pyteomics.xml.load_psims)


def _use_table(table: Any) -> object:
    columns = [table.get_texts(name) for name in table.names]
    return columns, table.get_numbers(table.number_names, allow_missing=True), table.take([0])


def _read_stream(path: Path) -> Any:
    return OutputStream(path, Linear(), ROWS).collect()


def _outputs() -> Iterator[Tree]:
    columns = pyarrow.table({name: ROWS[:, i] for i, name in enumerate("abc")})
    lists = pyarrow.table({"row": ROWS.tolist()})
    fixed = pyarrow.table({"row": pyarrow.FixedSizeListArray.from_arrays(ROWS.ravel(), 3)})
    return parquet_tables(columns, lists, fixed, name="outputs.parquet")


def _save_array(array: Any, path: Path) -> None:
    np.save(path, array)


def _arrays() -> Iterator[Tree]:
    for array in (ROWS, ROWS.astype(np.float32), ROWS.astype(np.int64), np.asfortranarray(ROWS)):
        yield written(partial(_save_array, array), "outputs.npy")


def _table() -> Iterator[Tree]:
    table = pyarrow.table({"a": [1.5, None, 3.0], "b": [1, 2, 3], "c": ["x", "y", None], "d": [True, False, None]})
    return parquet_tables(table, name="table.parquet")


def _molecules() -> Iterator[Tree]:
    smiles = ["CCO", "COC", "c1ccccc1O", "C[C@H](N)C(=O)O"]
    table = pyarrow.table(
        {"name": ["ethanol", "", "phenol", "alanine"], "smiles": smiles, "mass": [1.0, 2.0, 3.0, 4.0]}
    )
    encoded = table.set_column(1, "smiles", table["smiles"].dictionary_encode())
    return parquet_tables(table, encoded, name="molecules.parquet")


def _spectra() -> Iterator[Tree]:
    table = pyarrow.table(
        {"mz": [[60.02, 85.03], [70.1, 80.1, 90.5]], "intensity": [[100.0, 50.0], [5.0, 6.0, 7.0]]}
        | {"precursor_mz": [181.0707, 195.0877], "adduct": ["[M+H]+", None], "formula": ["C6H12O6", None]}
        | {"smiles": ["OCC1OC(O)C(O)C(O)C1O", None], "name": ["first", "second"], "tags": [["a"], ["b", "c"]]}
    )
    return parquet_tables(table, name="spectra.parquet")


def _dataset(name: str, kind: str, seeds: Callable[[], Iterable[Tree]], tokens: bytes = b",", **sizes: Any) -> Target:
    """Return a target that loads a data set whose home is the folder of the input, without its checksums."""

    def prepare() -> None:
        files = tuple(RemoteFile(file) for file in next(iter(seeds())))
        DATASETS[name] = replace(DATASETS[name], forms=(Form(kind, files),), **sizes)

    def read(folder: Path) -> Any:
        os.environ["PSILEARN_DATA"] = str(folder)
        return load(name)

    return Target(
        f"load-{name}", seeds, read, tokens=tuple(tokens.split(b"|")) if tokens else (), prepare=prepare, time=4e-5
    )


def _usps() -> Iterator[Tree]:
    def write(path: Path) -> None:
        rng = np.random.default_rng(0)
        with h5py.File(path, "w") as file:
            for name, n in (("train", 3), ("test", 2)):
                file[f"{name}/data"] = rng.random((n, 256)).astype(np.float32)
                file[f"{name}/target"] = np.arange(n)

    yield written(write, "usps.h5")


def _npz() -> Iterator[Tree]:
    rng = np.random.default_rng(0)
    X, Y = rng.random((5, 3)), sparse.csr_matrix(rng.random((5, 2)) < 0.5, dtype=np.int8)
    parts: Any = {"Y_data": Y.data, "Y_indices": Y.indices, "Y_indptr": Y.indptr, "Y_shape": np.array(Y.shape)}
    common: Any = {"X": X, "is_test": np.arange(5) > 2}
    yield written(lambda path: np.savez_compressed(path, **common, **parts), "rows.npz")
    yield written(lambda path: np.savez(path, **common, Y=Y.toarray()), "rows.npz")


def _metabolites() -> Iterator[Tree]:
    columns: dict[str, Any] = {
        "precursor_mz": [181.07, 195.09],
        "formula": ["C6H12O6", "C6H12O6"],
        "smiles": ["CCO", "COC"],
    }
    columns |= {"mz": [[60.0, 85.0], [70.1, 80.1]], "intensity": [[1.0, 0.5]] * 2, "inchikey14": ["A" * 14, "B" * 14]}
    columns |= {"fold": [0, 1], "license": ["CC0", "CC BY"], "noncommercial": [False, True]}
    molecules = pyarrow.table({"smiles": ["CCO", "COC"], "inchikey14": ["A", "B"]})
    tables = {"spectra": pyarrow.table(columns), "candidates": molecules, "unlabelled": molecules}
    parts = [written(partial(parquet.write_table, table), f"{name}.parquet") for name, table in tables.items()]
    yield {name: content for part in parts for name, content in part.items()}


def _record() -> Iterator[Tree]:
    row = Row("Toy", "OEL", Metric("loss", "lower"), 0.5, paper=0.6, parameters={"p": 3}, seconds={"fit": 1.0})
    first = ("toys", "toy", "A toy problem", 0, False, {"pairs": 50}, "1f", [row], ["a note"], {"a.png": "a"}, 1.0)
    record = Record(*first, "2026-01-01 12:00", {"numpy": "2"})

    def write(folder: Path) -> None:
        folder.mkdir()
        record.save(folder)

    yield written(write)


def _read_arrays(folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    context = Context({}, seed=0, n_jobs=None, log=lambda text: None, scratch=folder)
    return context.compute_once("loss", lambda: {"loss": np.arange(20.0), "name": np.array(["a", "bc"])})


def _mulan() -> Iterable[Tree]:
    yield {"rows.arff": (SEEDS / "mulan.arff").read_bytes(), "labels.xml": (SEEDS / "labels.xml").read_bytes()}


READERS: tuple[Target, ...] = (
    _dataset(
        "bibtex", "mulan", _mulan, ARFF + b"|<label name='size'/>", n_train=3, n_test=0, n_features=2, n_outputs=2
    ),
    _dataset("eurlex4k", "xc", stored("xc.txt"), n_train=3, n_test=0, n_features=4, n_outputs=3),
    _dataset("cold", "ranks", stored("ranks.csv"), b"L1|A1|3", n_train=2, n_test=0, n_features=2, n_outputs=3),
    _dataset("sushi", "orders", stored("orders.csv"), b">|=|a>b", n_train=3, n_test=0, n_features=1, n_outputs=3),
    text_target("spectra-mgf", "*.mgf", _read_both, b"BEGIN IONS\n|END IONS\n|=", time=4e-5),
    text_target("spectra-msp", "*.msp", _read_both, b"NAME:|Num Peaks: |;", time=4e-5),
    text_target("spectra-sirius", "*.ms", _read_both, b">compound |>ms2\n|>collision |>", time=4e-5),
    text_target("spectra-massbank", "massbank.txt", _read_both, b"//\n", time=4e-5),
    text_target(
        *(
            "spectra-mzml",
            "*.mzML",
            _read_both,
            b"<spectrum>|</spectrum>|<binary>|</binary>|32-bit integer|no compression",
        ),
        prepare=_keep_vocabulary,
        time=4e-5,
    ),
    text_target("molecules-csv", "molecules.csv", read_molecules, time=4e-5),
    text_target("molecules-tsv", "molecules.tsv", read_molecules, time=4e-5),
    text_target("molecules-smi", "molecules.smi", read_molecules, b"C(|C1|[", time=4e-5),
    text_target(
        "molecules-sdf",
        "molecules.sdf",
        read_molecules,
        b"$$$$\n|M  END\n|M  CHG  1   1   9\n|V3000|>  <a>\n",
        time=4e-5,
    ),
    text_target("table-csv", "table*.csv*", read_table, b'"|;|,|\n|1e309|_|?', use=_use_table),
    text_target("table-arff", "table.arff*", read_table, b"{|}|red|'|@data|-C", use=_use_table),
    text_target("table-svmlight", "table.svm*", read_table, use=_use_table),
    binary_target("table-parquet", "table.parquet", _table, read_table, use=_use_table),
    binary_target("outputs-parquet", "outputs.parquet", _outputs, _read_stream, argument="unlabeled"),
    binary_target("outputs-npy", "outputs.npy", _arrays, _read_stream, argument="unlabeled"),
    binary_target("spectra-parquet", "spectra.parquet", _spectra, _read_both),
    binary_target("molecules-parquet", "molecules.parquet", _molecules, read_molecules),
    binary_target("record", "toy.json", _record, Record.load),
    Target("stored-arrays", lambda: [written(_read_arrays)], _read_arrays),
    _dataset("usps", "hdf5", _usps, n_train=3, n_test=2),
    _dataset("mediamill", "npz", _npz, n_train=3, n_test=2, n_features=3, n_outputs=2),
    _dataset("metabolites", "metabolites", _metabolites, n_train=2, n_outputs=2),
)
