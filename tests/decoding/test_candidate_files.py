"""Saved candidates: loaded ones are as built, and incomplete folders and those of other models are rejected."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import sklearn
from scipy import sparse

from psilearn import KDE
from psilearn._backend import Compute
from psilearn._utils.array_files import UNSEALED, seal
from psilearn._utils.hashing import content_hash
from psilearn.decoding import SharedCandidates, candidate_files
from psilearn.decoding.candidate_files import FORMAT, MANIFEST
from psilearn.embedding import Embedding
from psilearn.kernels import Dice, Gaussian, Kemeny, Linear, Pairwise, Precomputed
from tests.problems import make
from tests.sealed_files import edit

RNG = np.random.default_rng(0)
Y = RNG.standard_normal((40, 5)).round(1)
Z = RNG.standard_normal((6, 3))
E = Embedding(Linear(), np.eye(5), np.eye(5)[:, :3])
SHARD = "shard-00000.safetensors"


def same(a, b, queries=Z):
    x, y = (candidates.nearest(queries, 4) for candidates in (a, b))
    np.testing.assert_array_equal(x.indices, y.indices)
    np.testing.assert_array_equal(x.distances, y.distances)


@pytest.fixture
def saved(tmp_path):
    SharedCandidates.build(Y, E).save(tmp_path / "set")
    return tmp_path / "set"


@pytest.mark.parametrize("working_memory", [1024, 1e-3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array, np.asfortranarray, list])
def test_saved_and_loaded_is_as_built(tmp_path, form, working_memory):
    outputs = form(Y)
    given = outputs if form is list else None
    kernel = Embedding(Linear(), np.eye(5), E.basis)
    with sklearn.config_context(working_memory=working_memory):
        built = SharedCandidates.build(outputs, kernel)
        mapped = SharedCandidates.build(outputs, kernel, tmp_path / "mapped")
        built.save(tmp_path / "saved")
        loaded = [SharedCandidates.load(tmp_path / name, kernel, given) for name in ("mapped", "saved")]
    assert not any(np.asarray(other.g).flags.owndata for other in (mapped, *loaded))
    for other in (mapped, *loaded, SharedCandidates(outputs, kernel, built.squared_norms)):
        same(built, other)
        assert other.hash == built.hash and len(other) == 40
    if form is not list:
        assert type(loaded[0].outputs) is type(outputs)
        difference = loaded[0].outputs - outputs
        assert abs(difference).max() == 0
    assert loaded[0].distinct().hash == built.distinct().hash
    np.testing.assert_allclose(loaded[1].points(), built.points())


def test_every_kind_of_output_is_kept(problem, tmp_path):
    model = KDE(Gaussian(0.5), problem.kernel, alpha=1e-3, n_components=3).fit(problem.X, problem.Y)
    queries = model.embed(problem.X_test)
    built = SharedCandidates.build(problem.candidates, model.embedding_, tmp_path / "set")
    given = problem.candidates if isinstance(problem.candidates, list) else None
    loaded = SharedCandidates.load(tmp_path / "set", model.embedding_, given)
    same(built, loaded, queries)
    found = loaded.nearest(queries, 1).nearest
    np.testing.assert_allclose(
        problem.kernel.paired(found, found), problem.kernel.diag(model.predict(problem.X_test, problem.candidates))
    )


def test_the_requested_precision_is_stored(tmp_path):
    single = Compute(np.dtype(np.float32))
    built = SharedCandidates.build(Y, E, tmp_path / "set", compute=single)
    assert SharedCandidates.build(Y, E, compute=single).g.dtype == np.float32
    loaded = SharedCandidates.load(tmp_path / "set", E)
    assert loaded.g.dtype == np.float32 and SharedCandidates.build(Y, E).g.dtype == np.float64
    same(built, loaded)
    np.testing.assert_allclose(loaded.g, E(Y), rtol=1e-6)


@pytest.mark.parametrize("outputs", [np.zeros((1, 5)), sparse.csr_matrix((3, 5))])
def test_empty_embeddings_and_matrices(tmp_path, outputs):
    nothing = Embedding(Linear(), np.zeros((0, 5)), np.zeros((0, 0)))
    SharedCandidates.build(outputs, nothing, tmp_path / "set")
    loaded = SharedCandidates.load(tmp_path / "set", nothing)
    assert loaded.g.shape == (outputs.shape[0], 0)
    np.testing.assert_array_equal(loaded.nearest(np.zeros((2, 0)), 1).indices, 0)


def test_outputs_that_are_not_stored_must_be_given(tmp_path):
    words = ["abc", "abd", "xyz", "abc"]
    kernel = Embedding(Pairwise(lambda a, b: float(len(set(a) & set(b)))), words[:3], np.eye(3))
    SharedCandidates.build(words, kernel, tmp_path / "set")
    with pytest.raises(ValueError, match=r"were not stored.*outputs="):
        SharedCandidates.load(tmp_path / "set", kernel)
    assert SharedCandidates.load(tmp_path / "set", kernel, tuple(words)).outputs == tuple(words)
    for other in (words[::-1], words[:3]):
        with pytest.raises(ValueError, match="The given outputs are not those of"):
            SharedCandidates.load(tmp_path / "set", kernel, other)


@pytest.mark.parametrize("kernel", [Linear(), Kemeny()], ids=repr)
def test_outputs_can_be_given_in_the_form_in_which_a_model_took_them(tmp_path, kernel):
    outputs = [[0.5, 1.0], [2.0, 0.0], [1.0, 1.0]] if isinstance(kernel, Linear) else ["a>b>c", "c>a>b", "b>a>c"]
    model = KDE(Linear(), kernel, n_components=1).fit(np.eye(3), outputs)
    stored = model.candidate_set(outputs, tmp_path / "set")
    same(SharedCandidates.load(tmp_path / "set", model.embedding_, outputs), stored, np.ones((2, 1)))
    with pytest.raises(ValueError, match="The given outputs are not those of"):
        SharedCandidates.load(tmp_path / "set", model.embedding_, outputs[::-1])


def test_a_set_of_another_model_is_rejected(saved):
    with pytest.raises(ValueError, match="embedded by another model"):
        SharedCandidates.load(saved, Embedding(Linear(), np.eye(5), -np.eye(5)[:, :3]))


def reseal(path, change):
    """Change the first shard as an attacker would: its checksums and those of the manifest are valid."""
    edit(FORMAT, path / SHARD, change)
    file = FORMAT.read(path / SHARD)
    edit_manifest(path, lambda content: content["shards"][0].update(n_bytes=file.n_bytes, sha256=file.sha256))


def edit_manifest(path, change):
    content = json.loads((path / MANIFEST).read_text())
    change(content)
    (path / MANIFEST).write_bytes(seal(json.dumps({**content, "sha256": UNSEALED}).encode())[0])


def test_damaged_files_are_rejected(saved):
    shard = saved / SHARD
    whole = shard.read_bytes()
    for content in (whole[:-8], b"x" * len(whole), b"", whole[:-1] + b"x"):
        shard.write_bytes(content)
        with pytest.raises(ValueError, match=str(shard)):
            SharedCandidates.load(saved, E)
    shard.unlink()
    with pytest.raises(FileNotFoundError, match=str(shard)):
        SharedCandidates.load(saved, E)


def test_shards_of_another_set_are_rejected(saved, tmp_path):
    SharedCandidates.build(Y + 1, E).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / SHARD, saved / SHARD)
    for verify in (True, False):
        with pytest.raises(ValueError, match="not the shard that the manifest"):
            SharedCandidates.load(saved, E, verify=verify)


def put(name, values):
    return lambda _, arrays: arrays.update({name: values})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("outputs", Y + 1), "their hash differs"),
        (put("outputs", np.full_like(Y, np.nan)), "NaN"),
        (put("outputs", Y[:, :4]), r"shape \(40, 4\)"),
        (put("outputs", Y[:, 0].copy()), r"shape \(40,\)"),
        (put("outputs", Y[:39]), "40 outputs"),
        (put("outputs", Y.reshape(5, 40)), "40 outputs"),
        (put("g", np.full((40, 3), np.nan)), "not finite"),
        (put("g", np.zeros((40, 2))), "shape"),
        (put("g", np.zeros((40, 3), np.int64)), "dtypes"),
        (put("squared_norms", np.full(40, np.inf)), "not finite"),
        (put("squared_norms", np.zeros((40, 1))), "shape"),
        (put("more", np.zeros(3)), "arrays"),
        (lambda _, arrays: arrays.update(x=arrays.pop("g")), "arrays"),
        (lambda content, _: content["outputs"].update(kind="csr_array"), "KeyError"),
        (lambda content, _: content["outputs"].update(kind="os.system"), "KeyError"),
        (lambda content, _: content.pop("outputs"), "KeyError"),
        (lambda content, _: [], "TypeError"),
    ],
)
def test_tampered_shards_are_rejected(saved, change, message):
    reseal(saved, change)
    with pytest.raises(ValueError, match=f"{saved / SHARD} .*that can be used: .*{message}"):
        SharedCandidates.load(saved, E)


def test_indices_out_of_range_are_rejected(tmp_path):
    SharedCandidates.build(sparse.csr_matrix(Y), E, tmp_path / "set")
    reseal(tmp_path / "set", lambda _, arrays: arrays.update(indices=arrays["indices"] + 10**6))
    with pytest.raises(ValueError, match=r"that can be used: .*ind"):
        SharedCandidates.load(tmp_path / "set", E)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "version 99"),
        ({"format": "something"}, "is that of 'something'"),
        ({"shards": []}, "not numbered"),
        ({"shards": [{"name": "../shard-00000.safetensors"}]}, "TypeError"),
        ({"shards": [{"name": "x", "n": 1, "outputs_sha256": "", "n_bytes": 1, "sha256": ""}]}, "not numbered"),
        ({"embedding_sha256": "0"}, "another model"),
        (None, r"that can be used"),
    ],
)
def test_other_manifests_are_rejected(saved, change, message):
    if change is None:
        (saved / MANIFEST).write_text("[1, 2")
    else:
        content = json.loads((saved / MANIFEST).read_text())
        (saved / MANIFEST).write_text(json.dumps({**content, **change}))
        with pytest.raises(ValueError, match=str(saved)):
            SharedCandidates.load(saved, E)
        edit_manifest(saved, lambda content: content.update(change))
    with pytest.raises(ValueError, match=message) as caught:
        SharedCandidates.load(saved, E)
    assert str(saved) in str(caught.value)


def test_no_folder_is_overwritten_and_unfinished_ones_are_rejected(saved, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"is not a set of candidates that can be used: it has no manifest\.json"):
        SharedCandidates.load(tmp_path, E)
    with pytest.raises(FileExistsError, match="already"):
        SharedCandidates.build(Y, E, saved)
    with pytest.raises(FileExistsError, match="other files"):
        SharedCandidates.build(Y, E, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="is a file"):
        SharedCandidates.build(Y, E, tmp_path / "file")

    class Broken(Linear):
        def _block(self, A, B, compute):
            if broken:
                raise RuntimeError("stop")
            return super()._block(A, B, compute)

    broken, half = True, Embedding(Broken(), np.eye(5), E.basis)
    with pytest.raises(RuntimeError):
        SharedCandidates.build(Y, half, tmp_path / "half")
    assert not (tmp_path / "half").exists()
    broken = False
    same(SharedCandidates.build(Y, half, tmp_path / "half"), SharedCandidates.load(tmp_path / "half", half))
    full = type("", (), {"free": 10})
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(OSError, match="only 10 are free"):
        SharedCandidates.build(Y, E, tmp_path / "large")
    assert not (tmp_path / "large").exists()


def test_a_hash_is_of_contents_alone():
    tags = (Y > 0.5).astype(float)
    csr = sparse.csr_matrix(tags)
    shuffled = csr.copy()
    for i in range(40):  # columns of a row in another order
        row = slice(shuffled.indptr[i], shuffled.indptr[i + 1])
        shuffled.indices[row], shuffled.data[row] = shuffled.indices[row][::-1].copy(), shuffled.data[row][::-1].copy()
    shuffled.has_sorted_indices = False
    explicit = sparse.csr_matrix(np.ones((40, 5))).multiply(2).tocsr()
    explicit.data = 1.0 * tags.ravel()
    for a, b in [
        (tags, np.asfortranarray(tags)),
        (tags, np.repeat(tags, 2, axis=0)[::2]),
        (tags, tags.astype(">f8")),
        (tags, np.where(tags == 0, -0.0, tags)),
        (csr, shuffled),
        (csr, explicit),
        (["a", ("b", 1)], ("a", ("b", 1.0))),
        ([{"x": {3, 1, 2}, "y": None}], [{"y": None, "x": frozenset([1, 2, 3])}]),
        ([np.arange(3), b"x", True], [np.arange(3.0), b"x", np.bool_(1)]),
    ]:
        assert content_hash(a) == content_hash(b)
        with sklearn.config_context(working_memory=1e-4):
            assert content_hash(a) == content_hash(b)
    different = [
        tags,
        tags[::-1],
        tags.T,
        tags[:-1],
        csr,
        csr[::-1],
        list(tags),
        ["ab", "c"],
        ["a", "bc"],
        [("a", "bc")],
    ]
    assert len({content_hash(a) for a in different}) == len(different)
    with pytest.raises(TypeError, match="no contents that can be hashed"):
        content_hash([object()])


def test_fingerprints_tell_embeddings_apart_and_survive_a_process():
    F = np.eye(4)
    kernels = [
        Linear(),
        Gaussian(0.1),
        Gaussian(0.2),
        Gaussian(0.1) + Linear(),
        Dice(),
        Precomputed(F),
        Precomputed(2 * F),
    ]
    prints = [Embedding(kernel, np.eye(4), F).fingerprint for kernel in kernels]
    prints += [Embedding(Linear(), np.eye(4)[::-1], F).fingerprint, Embedding(Linear(), np.eye(4), -F).fingerprint]
    assert len(set(prints)) == len(prints)
    median = Gaussian()
    before = Embedding(median, np.eye(4), F).fingerprint
    assert Embedding(median.fit(Y), np.eye(4), F).fingerprint != before  # the fitted width counts
    assert Embedding(Pairwise(min), [object()], F).fingerprint == Embedding(Pairwise(min), [object()], F).fingerprint
    code = (
        "import numpy as np; from psilearn.embedding import Embedding; from psilearn.kernels import Pairwise;"
        "print(Embedding(Pairwise(min), [{'a', 'b', 'c'}], np.eye(1)).fingerprint)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.strip() == Embedding(Pairwise(min), [{"c", "b", "a"}], np.eye(1)).fingerprint


def test_a_model_keeps_its_fingerprint_through_a_pickle():
    import pickle

    problem = make("vectors")
    model = KDE(Gaussian(0.5), problem.kernel, alpha=1e-3, n_components=3).fit(problem.X, problem.Y)
    candidates = SharedCandidates.build(problem.candidates, model.embedding_)
    candidates.require_embedding(pickle.loads(pickle.dumps(model)).embedding_)


class CountedLinear(Linear):
    """A kernel that counts the rows it was evaluated on, and is interrupted after some of them."""

    n_rows = 0
    limit = np.inf

    def _block(self, A, B, compute):
        CountedLinear.n_rows += max(len(A), len(B))
        if CountedLinear.n_rows > CountedLinear.limit:
            raise KeyboardInterrupt
        return super()._block(A, B, compute)


@pytest.fixture
def counted():
    CountedLinear.n_rows, CountedLinear.limit = 0, np.inf
    return Embedding(CountedLinear(), np.eye(5), np.eye(5)[:, :3])


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(candidate_files, "SHARD_BYTES", 610)  # several shards of 40 rows


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_several_shards_are_one_set(tmp_path, form):
    built = SharedCandidates.build(form(Y), E, tmp_path / "set")
    assert len(list((tmp_path / "set").iterdir())) > 3
    for candidates in (built, SharedCandidates.load(tmp_path / "set", E)):
        same(candidates, SharedCandidates.build(form(Y), E))
        assert candidates.hash == SharedCandidates.build(form(Y), E).hash


@pytest.mark.usefixtures("small_shards")
def test_an_interrupted_build_is_resumed(tmp_path, counted):
    CountedLinear.limit = 25
    with pytest.raises(KeyboardInterrupt):
        SharedCandidates.build(Y, counted, tmp_path / "set", dtype="float32")
    sizes = [len(FORMAT.read(file).arrays["g"]) for file in (tmp_path / "set").iterdir()]
    with pytest.raises(ValueError, match="was interrupted; run it again"):
        SharedCandidates.load(tmp_path / "set", counted, Y)
    CountedLinear.n_rows, CountedLinear.limit = 0, np.inf
    resumed = SharedCandidates.build(Y, counted, tmp_path / "set", dtype="float32")
    assert 0 < sum(sizes) <= 25 and CountedLinear.n_rows == 40 - sum(sizes)
    np.testing.assert_array_equal(np.asarray(resumed.g), (Y[:, :3]).astype(np.float32))
    same(resumed, SharedCandidates.load(tmp_path / "set", counted, Y))
    exact = SharedCandidates.build(Y, E).nearest(Z, 4)
    np.testing.assert_allclose(resumed.nearest(Z, 4).distances, exact.distances, atol=1e-5)


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("change", ["other outputs", "other dtype", "damaged shard", "link"])
def test_an_interrupted_build_of_something_else_starts_again(tmp_path, counted, change):
    folder, outputs, options = tmp_path / "set", Y, {"dtype": "float32"}
    CountedLinear.limit = 25
    with pytest.raises(KeyboardInterrupt):
        SharedCandidates.build(Y, counted, folder, **options)
    n_shards = len(list(folder.iterdir()))
    CountedLinear.n_rows, CountedLinear.limit = 0, np.inf
    if change == "other outputs":
        outputs = Y + 1
    elif change == "other dtype":
        options = {}
    elif change == "damaged shard":
        for file in folder.iterdir():
            file.write_bytes(file.read_bytes()[:-1])
    else:
        for file in folder.iterdir():
            file.rename(tmp_path / file.name)
            file.symlink_to(tmp_path / file.name)
    assert n_shards
    built = SharedCandidates.build(outputs, counted, folder, **options)
    assert CountedLinear.n_rows == 40
    np.testing.assert_allclose(np.asarray(built.g), outputs[:, :3], atol=1e-6)
    assert len(SharedCandidates.load(folder, counted, outputs)) == 40


def test_a_build_that_was_killed_while_it_wrote_the_manifest_is_resumed(saved):
    manifest = saved / "manifest.json"
    manifest.rename(saved / ".manifest.json.0123456789abcdef.tmp")
    SharedCandidates.build(Y, E, saved)
    assert sorted(file.name for file in saved.iterdir()) == ["manifest.json", "shard-00000.safetensors"]


def test_options_of_a_folder_are_rejected_without_one():
    with pytest.raises(ValueError, match="pass path"):
        SharedCandidates.build(Y, E, dtype="float32")
    with pytest.raises(ValueError, match="dtype must be"):
        SharedCandidates.build(Y, E, "unused", dtype="float16")
