"""Inputs with which readers once hung, used too much memory, or raised an error that does not name the file."""

import json
import re
import zipfile
import zlib
from base64 import b64encode

import numpy as np
import pytest

from psilearn.kernels import Gaussian
from psilearn.utils import MAX_EXPANSION, convert_read_errors
from psilearn_lab.arrays import read_array, read_npz
from psilearn_lab.experiments import Context, Record

ENTITIES = '<!DOCTYPE mzML [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


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
    for old, new in ((b"(4, 3)", b"(9, 9)"), (b"(4, 3)", b"(-4,3)"), (b"<f8", b"|V0")):
        with pytest.raises(ValueError, match="an array of shape"):
            read_array(array.replace(old, new)[: -96 if new == b"|V0" else None])


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


def test_damaged_stored_arrays_are_computed_again(tmp_path):
    context = Context({}, seed=0, n_jobs=None, log=lambda text: None, scratch=tmp_path)
    context.compute_once("loss", lambda: {"loss": np.arange(9.0)})
    path = tmp_path / "loss.npz"
    content = path.read_bytes()

    def content_of(shape):
        """Return an archive whose array declares a shape, but has 9 numbers."""
        np.savez(tmp_path / "plain.npz", loss=np.arange(9.0))
        with zipfile.ZipFile(tmp_path / "plain.npz") as archive, zipfile.ZipFile(tmp_path / "b.npz", "w") as changed:
            array = archive.read("loss.npy")
            changed.writestr("loss.npy", array.replace(b"(9,), }".ljust(len(shape) + 3), shape + b", }"))
        return (tmp_path / "b.npz").read_bytes()

    for damaged in (
        b"",
        content[:-30],
        content.replace(b"NUMPY", b"numpy"),
        content_of(b"(9000000000,)"),
        content_of(b"(9,"),
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
    path.write_text(format_mzml("", ENTITIES))
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
