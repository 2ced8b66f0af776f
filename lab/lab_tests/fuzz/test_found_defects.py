"""Inputs with which readers once hung, used too much memory, or raised an error that does not name the file."""

import gzip
import json
import os
import re
import signal
import tracemalloc
import zipfile
import zlib
from base64 import b64encode
from contextlib import contextmanager

import numpy as np
import pytest

from psilearn.kernels import Gaussian
from psilearn.utils import MAX_EXPANSION, convert_read_errors, read_array, read_npz
from psilearn_lab.datasets import read_mulan, read_orders_csv, read_ranks_csv, read_svmlight_multilabel, read_xc
from psilearn_lab.datasets.form_readers import _READERS
from psilearn_lab.experiments import Context, Record

MIN_LIMIT = 2**20  # bytes that a compressed file may expand to in any case
LABELS = '<labels><label name="a"/></labels>'
ARFF = "@relation r\n@attribute a {0,1}\n@attribute b numeric\n@data\n0,1\n"


@contextmanager
def time_limit(seconds):
    """Raise an error in a call that takes too long; a reader that opens a pipe would never return."""

    def stop(*_):
        raise RuntimeError("the time limit was reached")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def read_labels(path):
    arff = path.with_name("rows.arff")
    arff.write_text(ARFF)
    return read_mulan(arff, path)


READERS = [read_mulan, read_labels, read_xc, read_svmlight_multilabel, read_ranks_csv, read_orders_csv, Record.load]


@pytest.mark.parametrize("read", READERS)
def test_pipes_are_not_opened(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with time_limit(20), pytest.raises(ValueError, match=r"pipe .*is a pipe"):
        read(tmp_path / "pipe")


def test_links_to_files_are_read(tmp_path):
    (tmp_path / "rows.txt").write_text("1 1 1\n0 0:1\n")
    (tmp_path / "link.txt").symlink_to(tmp_path / "rows.txt")
    assert read_xc(tmp_path / "link.txt").X.shape == (1, 1)


@pytest.mark.parametrize("read", [read_xc, read_svmlight_multilabel, read_ranks_csv, read_mulan])
def test_an_empty_gzip_file_is_named(tmp_path, read):
    (tmp_path / "rows.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(ValueError, match=r"rows.gz is empty"):
        read(tmp_path / "rows.gz")


def test_a_size_with_thousands_of_digits_is_reported_with_its_line(tmp_path):
    (tmp_path / "rows.txt").write_text(f"1 {'9' * 5000} 1\n0 0:1\n")
    with pytest.raises(ValueError, match=r"rows.txt, line 1: three numbers are expected"):
        read_xc(tmp_path / "rows.txt")
    (tmp_path / "rows.arff").write_text(ARFF.replace("relation r", f"relation 'r: -C {'9' * 5000}'"))
    with pytest.raises(ValueError, match=r"rows.arff: 9{20} labels of 2 attributes"):
        read_mulan(tmp_path / "rows.arff")


def test_white_space_does_not_slow_the_parser_of_rows(tmp_path):
    (tmp_path / "rows.arff").write_text(ARFF.replace("0,1\n", f"0,{' ' * 20_000}x{' ' * 20_000}'\n"))
    with time_limit(20), pytest.raises(ValueError, match=r"rows.arff, line 5: quotes that do not close"):
        read_mulan(tmp_path / "rows.arff")


@pytest.mark.parametrize("number", ["-1e309", "1e309", "nan", "inf"])
def test_values_that_are_not_finite_are_rejected_in_the_header_and_in_rows(tmp_path, number):
    path = tmp_path / "rows.arff"
    for text in (f"@attribute b {{{number},1}}\n@data\n{{}}\n", f"@attribute b numeric\n@data\n0,{number}\n"):
        path.write_text(f"@relation 'r: -C 1'\n@attribute a {{0,1}}\n{text}")
        with pytest.raises(ValueError, match=r"rows.arff, line [35]: .*(finite|inf|nan)"):
            read_mulan(path)


@pytest.mark.parametrize("read", [read_xc, read_svmlight_multilabel, read_ranks_csv, read_mulan])
def test_a_gzip_file_that_expands_without_bound_is_rejected(tmp_path, read):
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(b"1" * (30 << 20), 9))
    tracemalloc.start()
    with pytest.raises(ValueError, match=rf"rows.gz, line 1: the contents are over {MAX_EXPANSION} times as large"):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * MAX_EXPANSION * path.stat().st_size  # the first line, once as it is collected and once as bytes


def test_omitted_values_that_are_not_zero_cannot_fill_the_memory(tmp_path):
    attributes = "".join(f"@attribute a{j} {{1,0}}\n" for j in range(1000))
    (tmp_path / "rows.arff").write_text(f"@relation 'r: -C 1'\n{attributes}@data\n" + "{}\n" * 3000)
    with pytest.raises(ValueError, match=r"rows.arff: 3000 rows and 1000 attributes whose first listed value is not 0"):
        read_mulan(tmp_path / "rows.arff")
    (tmp_path / "rows.arff").write_text(f"@relation 'r: -C 1'\n{attributes}@data\n" + "{}\n" * 3)
    assert read_mulan(tmp_path / "rows.arff").X.sum() == 3 * 999


def test_repetitive_contents_of_a_small_gzip_file_are_read(tmp_path):
    rows = MIN_LIMIT // 10
    (tmp_path / "rows.gz").write_bytes(gzip.compress(f"{rows} 1 1\n".encode() + b"0 0:1\n" * rows))
    assert read_xc(tmp_path / "rows.gz").X.shape == (rows, 1)


ENTITIES = '<!DOCTYPE labels [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize("entities", [ENTITIES, '<!DOCTYPE labels SYSTEM "file:///etc/passwd">'])
def test_a_document_type_of_labels_is_rejected(tmp_path, entities):
    (tmp_path / "labels.xml").write_text(entities + LABELS)
    with pytest.raises(ValueError, match=r"labels.xml is not an XML file of labels .*document type"):
        read_labels(tmp_path / "labels.xml")


def test_arrays_must_have_the_size_that_they_declare(tmp_path):
    np.savez(tmp_path / "rows.npz", X=np.zeros((4, 3)))
    content = (tmp_path / "rows.npz").read_bytes()
    assert read_npz(tmp_path / "rows.npz")["X"].shape == (4, 3)
    (tmp_path / "rows.npz").write_bytes(content.replace(b"(4, 3)", b"(9, 9)"))
    with pytest.raises(ValueError, match=r"rows.npz"):
        read_npz(tmp_path / "rows.npz")
    np.save(tmp_path / "a.npy", np.zeros((4, 3)))
    array = (tmp_path / "a.npy").read_bytes()
    assert read_array(array).shape == (4, 3)
    for shape in (b"(9, 9)", b"(-4,3)"):
        with pytest.raises(ValueError, match="an array of shape"):
            read_array(array.replace(b"(4, 3)", shape))


def test_an_archive_that_expands_without_bound_is_rejected(tmp_path):
    np.savez_compressed(tmp_path / "rows.npz", X=np.zeros(10 << 20))
    with pytest.raises(ValueError, match=r"rows.npz declares 83,886,\d+ bytes, .* over 200 times its size"):
        read_npz(tmp_path / "rows.npz")


def test_an_archive_cannot_declare_more_compressed_bytes_than_it_has(tmp_path):
    np.savez(tmp_path / "rows.npz", X=np.zeros(4))
    content = bytearray((tmp_path / "rows.npz").read_bytes())
    place = content.index(b"PK\x01\x02") + 20  # the compressed size in the directory
    content[place : place + 4] = (2**31).to_bytes(4, "little")
    (tmp_path / "rows.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"rows.npz declares 160 bytes, 2,147,483,648 compressed"):
        read_npz(tmp_path / "rows.npz")


def test_an_archive_of_another_compression_is_rejected(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.zeros(4))
    content = (tmp_path / "a.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "rows.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", content)
    with pytest.raises(ValueError, match=r"rows.npz .*compressed by another method"):
        read_npz(tmp_path / "rows.npz")


def write_npz(path, **changes):
    parts = {"X": np.ones((3, 2)), "is_test": np.array([False, False, True])}
    parts |= {"Y_data": np.ones(3), "Y_indices": np.array([0, 1, 0]), "Y_indptr": np.arange(4), "Y_shape": [3, 2]}
    np.savez(path, **{name: value for name, value in (parts | changes).items() if value is not None})
    return [path]


def test_matrices_of_a_dataset_are_validated(tmp_path):
    path = tmp_path / "rows.npz"
    assert _READERS["npz"](write_npz(path))[0].Y.shape == (2, 2)
    for changes in (
        {"Y_indices": np.array([0, 1, 10**6])},
        {"Y_indptr": np.array([0, 5, 1, 3])},
        {"is_test": None},
        {"is_test": np.array([0, 7, 1])},
        {"X": np.ones(3)},
        {"X": np.array(["a", "b", "c"])},
    ):
        with pytest.raises(ValueError, match=r"rows.npz"):
            _READERS["npz"](write_npz(path, **changes))


def test_hdf5_files_are_validated_before_they_are_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "usps.h5"
    path.write_bytes(b"no HDF5")
    with pytest.raises(OSError, match=r"usps.h5 cannot be read"):
        _READERS["hdf5"]([path])
    with h5py.File(path, "w") as file:
        file["train/target"] = [1]
    with pytest.raises(ValueError, match=r"usps.h5 is not an HDF5 file that can be read \(KeyError"):
        _READERS["hdf5"]([path])
    with h5py.File(path, "w") as file:  # nothing is stored of data that were never written
        file.create_dataset("train/data", (10**9, 256), "f4", chunks=(1024, 256))
        file.create_dataset("train/target", (10**9,), "i8", chunks=(1024,))
    with pytest.raises(ValueError, match=r"usps.h5 .*train/data has shape \(1000000000, 256\)"):
        _READERS["hdf5"]([path])


def test_damaged_stored_arrays_are_computed_again(tmp_path):
    context = Context({}, seed=0, n_jobs=None, log=lambda text: None, scratch=tmp_path)
    context.compute_once("loss", lambda: {"loss": np.arange(9.0)})
    path = tmp_path / "loss.npz"
    content = path.read_bytes()
    for damaged in (
        b"",
        content[:-30],
        content.replace(b"NUMPY", b"numpy"),
        content.replace(b"PK\x03\x04", b"PK\x03\x05"),
    ):
        path.write_bytes(damaged)
        assert context.compute_once("loss", lambda: {"loss": [7.0]})["loss"].tolist() in ([7.0], list(range(9)))


def test_errors_that_name_the_file_are_kept(tmp_path):
    path = tmp_path / "rows.txt"
    named = ValueError(f"{path}, line 3: wrong")
    with pytest.raises(ValueError, match="line 3: wrong") as caught, convert_read_errors(path, "a text"):
        raise named
    assert caught.value is named
    for error in (KeyError("a"), EOFError(), zlib.error("z"), RecursionError("deep"), StopIteration(), OverflowError()):
        message = re.escape(f"{path} is not a text that can be read (")
        with pytest.raises(ValueError, match=message), convert_read_errors(path, "a text"):
            raise error
    message = re.escape(f"{path} cannot be read (Permission denied).")
    with pytest.raises(PermissionError, match=message), convert_read_errors(path, "a text"):
        raise PermissionError(13, "Permission denied")


def write_parquet_file(path, **columns):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_each_damaged_byte_of_a_parquet_footer_gives_a_named_error(tmp_path):
    pytest.importorskip("rdkit")
    from psilearn.embedding.output_stream import read_parquet
    from psilearn_chem.molecules import read_molecules
    from psilearn_chem.spectra import read_spectra

    path = write_parquet_file(tmp_path / "t.parquet", smiles=["CCO", "C"], mz=[[1.0], [2.0]], intensity=[[1.0], [2.0]])
    content = path.read_bytes()
    readers = [read_molecules, lambda path: read_spectra(path, cleaning=None), lambda path: list(read_parquet(path))]
    n_errors = 0
    for place in range(len(content) - 200, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        for read in readers:
            try:
                read(path)
            except (ValueError, OSError) as error:
                assert "t.parquet" in str(error)
                n_errors += 1
    assert n_errors > 50


def format_mzml(data, entities=""):
    arrays = "".join(
        f'<binaryDataArray encodedLength="{len(data)}"><cvParam cvRef="MS" accession="MS:1000523" name="64-bit float"/>'
        f'<cvParam cvRef="MS" accession="MS:1000574" name="zlib compression"/>'
        f'<cvParam cvRef="MS" accession="MS:{number}" name="{name}"/><binary>{data}</binary></binaryDataArray>'
        for number, name in ((1000514, "m/z array"), (1000515, "intensity array"))
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>{entities}<mzML xmlns="http://psi.hupo.org/ms/mzml" version="1.1.0">'
        f'<run id="r"><spectrumList count="1"><spectrum index="0" id="scan=1" defaultArrayLength="2">'
        f'<cvParam cvRef="MS" accession="MS:1000511" name="ms level" value="2"/><binaryDataArrayList count="2">{arrays}'
        f"</binaryDataArrayList></spectrum></spectrumList></run></mzML>"
    )


@pytest.mark.filterwarnings("ignore")
def test_mzml_files_cannot_expand(tmp_path):
    pytest.importorskip("matchms")
    from psilearn_chem.spectra import read_spectra

    path = tmp_path / "a.mzML"
    path.write_text(format_mzml(b64encode(zlib.compress(np.array([50.0, 60.0]).tobytes())).decode()))
    assert len(read_spectra(path, cleaning=None).spectra) == 1
    path.write_text(format_mzml("", ENTITIES.replace("labels", "mzML")))
    with pytest.raises(ValueError, match=r"a.mzML is not an mzML file that can be read \(it declares a document type"):
        read_spectra(path)
    path.write_text(format_mzml(b64encode(zlib.compress(bytes(10 << 20), 9)).decode()))
    with pytest.raises(ValueError, match=rf"a.mzML .*its arrays are over {MAX_EXPANSION} times as large as the file"):
        read_spectra(path, errors="skip")


def test_records_with_deep_or_wrong_contents_are_named(tmp_path):
    for content in (b"[" * 100_000, json.dumps({"rows": 3}).encode(), b"\xff", b""):
        (tmp_path / "toy.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"toy.json is not the record"):
            Record.load(tmp_path / "toy.json")


@pytest.mark.parametrize("gamma", [1e308, 1e-308])
def test_the_largest_and_smallest_widths_do_not_overflow(gamma):
    rows = np.array([[0.0], [1.0]])
    np.testing.assert_array_equal(Gaussian(gamma)(rows, rows.copy()), np.eye(2) if gamma > 1 else np.ones((2, 2)))
