"""Saved models, candidates and libraries as targets: files of arrays, damaged, or changed and sealed again.

An attacker recomputes the checksums. Most inputs are therefore changed in their structure, the header or the arrays,
and then sealed: the checks behind the checksums are attacked.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from psilearn import IOKR, KDE, OEL, Landmarks, load_model, save_model
from psilearn.decoding import SharedCandidates
from psilearn.embedding import Embedding
from psilearn.kernels import Dice, Gaussian, GaussianTanimoto, Kemeny, Laplacian, Linear, Precomputed, uniform
from psilearn_chem import CandidateLibrary, MetaboliteIdentifier, MoleculeList, Spectrum
from psilearn_chem.molecules import Adduct, Fingerprints, Formula
from psilearn_chem.spectrum_kernels import spectrum_kernel
from psilearn_lab.fuzz.files import Special, Target, Tree, written
from psilearn_lab.fuzz.mutations import change_array, mutate_bytes, mutate_json

RESEALED_RATE = 0.7
UNSEALED = "0" * 64  # in the place of the digest of a header while it is computed
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1", "I8": "|i1", "U64": "<u8"}
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}
assert torch  # imported before the process is forked: a device in a damaged model would import it


def open_sealed(content: bytes | Special) -> tuple[dict[str, Any], bytes] | None:
    """Return the header and the data of a safetensors file; None for other files."""
    if not isinstance(content, bytes) or len(content) < 8:
        return None
    length = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + length])
    except (ValueError, RecursionError):
        return None
    return (header, content[8 + length :]) if isinstance(header, dict) else None


def seal(header: dict[str, Any], data: bytes) -> bytes:
    """Return a safetensors file with checksums of its header and its data, as psilearn writes them."""
    metadata = header.get("__metadata__")
    if isinstance(metadata, dict):
        metadata |= {"data_sha256": hashlib.sha256(data).hexdigest(), "sha256": UNSEALED}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    unsealed = len(text).to_bytes(8, "little") + text
    before, key, after = unsealed.rpartition(f'"sha256":"{UNSEALED}"'.encode())
    return before + key.replace(UNSEALED.encode(), hashlib.sha256(unsealed).hexdigest().encode()) + after + data


def reseal(tree: Tree) -> Tree:
    """Return the files with checksums of what they are now, also in the manifest that lists those of others."""
    opened = {name: open_sealed(content) for name, content in tree.items()}
    sealed = {name: seal(*found) if found else tree[name] for name, found in opened.items()}
    return {
        name: _seal_manifest(content, sealed) if name.endswith(".json") else content for name, content in sealed.items()
    }


def _seal_manifest(content: bytes | Special, tree: Tree) -> bytes | Special:
    """Return the manifest of a set of candidates with the sizes and checksums of its files and of itself."""
    with suppress(AttributeError, KeyError, TypeError, ValueError, RecursionError):  # it is damaged
        manifest = json.loads(content)  # type: ignore[arg-type]
        for entry in manifest["shards"]:
            header, data = open_sealed(tree[entry["name"]])  # type: ignore[misc]
            entry |= {"n_bytes": len(tree[entry["name"]]), "sha256": header["__metadata__"]["sha256"]}  # type: ignore[arg-type]
            with suppress(KeyError, TypeError, ValueError):  # CSR matrices keep their hash
                start, end = header["outputs"]["data_offsets"]
                outputs = np.frombuffer(data[start:end], DTYPES[header["outputs"]["dtype"]])
                entry["outputs_sha256"] = SharedCandidates(outputs.reshape(header["outputs"]["shape"])).hash
        text = json.dumps({**manifest, "sha256": UNSEALED}, indent=1).encode()
        before, _, after = text.rpartition(UNSEALED.encode())
        return before + hashlib.sha256(text).hexdigest().encode() + after
    return content


def mutate_sealed(tree: Tree, rng: Random, seeds: list[Tree]) -> Tree:
    """Return files that are damaged, exchanged or missing, or changed in their structure and sealed again."""
    if rng.random() < RESEALED_RATE:
        with suppress(RecursionError):  # a change is nested too deeply for Python's encoder
            for _ in range(rng.choice((1, 1, 2))):
                name = rng.choice(sorted(tree))
                tree[name] = _change_structure(tree[name], rng)
            return reseal(tree)
        return tree
    name, other, action = rng.choice(sorted(tree)), rng.choice(sorted(tree)), rng.randrange(8)
    content = tree[name]
    if action == 0:
        del tree[name]
    elif action == 1:
        tree[name], tree[other] = tree[other], tree[name]
    elif action == 2:
        tree[name] = rng.choice(seeds).get(name, content)
    elif isinstance(content, bytes):
        tree[name] = content[: rng.randrange(len(content) + 1)] if action == 3 else mutate_bytes(content, rng)
    return tree


def _change_structure(content: bytes | Special, rng: Random) -> bytes | Special:
    """Change the header, the JSON value in it, or an array of a file, so that it stays readable."""
    opened = open_sealed(content)
    if opened is None:
        try:
            return json.dumps(mutate_json(json.loads(content), rng)).encode()  # type: ignore[arg-type]
        except (ValueError, TypeError, RecursionError):
            return mutate_bytes(content, rng) if isinstance(content, bytes) else content
    header, data = opened
    metadata, action = header.get("__metadata__"), rng.random()
    with suppress(AttributeError, IndexError, KeyError, TypeError, ValueError):  # a previous change has damaged it
        if action < 0.5 and isinstance(metadata, dict) and "content" in metadata:
            value = mutate_json({"content": json.loads(metadata["content"])}, rng)
            metadata["content"] = json.dumps(value.get("content"))
        elif action < 0.65:
            mutate_json(header, rng)
        elif action < 0.75:
            data = mutate_bytes(data, rng)
        else:
            data = _change_tensor(header, data, rng)
    return seal(header, data)


def _change_tensor(header: dict[str, Any], data: bytes, rng: Random) -> bytes:
    """Change the values, the dtype or the shape of an array, with a table of arrays that fits."""
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            arrays[name] = np.frombuffer(data[start:end], DTYPES.get(entry["dtype"], "|u1"))
            if entry["dtype"] in DTYPES:
                arrays[name] = arrays[name].reshape(entry["shape"])
    chosen = rng.choice(sorted(arrays)) if arrays else None
    if chosen is not None:
        arrays[chosen] = change_array(arrays[chosen], rng)
    parts, end = [], 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        dtype = NAMES.get(array.dtype, header[name].get("dtype"))
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [start, end]}
        parts.append(array.tobytes())
    return b"".join(parts)


def craft_sealed(seeds: list[Tree], size: int) -> Iterator[Tree]:
    """Yield sealed files with contents that multiply or nest, and with sizes that are declared only."""
    for name, content in seeds[0].items():
        opened = open_sealed(content)
        if opened is None:
            continue
        text = opened[0]["__metadata__"].get("content", "{}")
        for crafted in _craft_values(text, size):
            header = json.loads(json.dumps(opened[0]))
            header["__metadata__"]["content"] = crafted
            yield reseal({**seeds[0], name: seal(header, opened[1])})
        for shape in ([10**15, 0], [0] * 64, [1] * 10**5, [2**62, 2**62], [-1], [10**30], "shape", [size, size]):
            header = json.loads(json.dumps(opened[0]))
            for key in header:
                if key != "__metadata__":
                    header[key]["shape"] = shape
            yield reseal({**seeds[0], name: seal(header, opened[1])})
        many = {f"a{i}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(size // 60)}
        yield reseal({**seeds[0], name: seal({**many, **opened[0]}, opened[1])})
        yield reseal({**seeds[0], name: seal(opened[0], opened[1] + bytes(size))})


def _craft_values(text: str, size: int) -> Iterator[str]:
    """Yield JSON texts: long or deep ones, and values exchanged for huge numbers, long texts and nested lists."""
    yield from ("[" * size, '{"a":' * (size // 8), text[:-1] + "," * size, '"' + "a" * size + '"')
    nested = '{"kind":"list","items":['
    for match in islice(re.finditer(r'-?\d+(?:\.\d+)?|"[^"]*"(?!:)|\[[^\[\]]*\]|\{[^{}]*\}', text), 40):
        value = match.group()
        many = f"[{','.join([value] * (size // (len(value) + 1)))}]"
        deep = nested * 200 + value + "]}" * 200
        for crafted in ("9" * 4000, "1" + "0" * 12, f'"{"a" * size}"', many, deep):
            yield text[: match.start()] + crafted + text[match.end() :]


SMILES = ["CCO", "COC", "CCC", "CCN", "CCCO", "COCC", "CC(C)O", "c1ccccc1", "CC(=O)O", "OCCO", "CCCC", "CC(C)C"]
X = np.random.default_rng(0).standard_normal((12, 4))
TAGS = (np.random.default_rng(1).random((12, 6)) < 0.4).astype(np.int8)
ORDERS = ["a>b>c", "b>c>a", "c>b>a", "a>c>b", "b>a>c", "c>a>b"] * 2
RANKS = np.argsort(np.argsort(X, axis=1), axis=1) + 1
CSR = sparse.csr_matrix(TAGS.astype(float))
PACKED = np.packbits(TAGS, axis=1)
TABLE = np.array(
    [[f"{text} {order}", order, *row] for text, order, row in zip(SMILES, ORDERS, X[:, :2], strict=True)], object
)


def make_spectra(smiles: list[str] = SMILES) -> list[Spectrum]:
    """Return one artificial spectrum per molecule."""
    rng, adduct = np.random.default_rng(2), Adduct.parse("[M+H]+")
    formulas = Fingerprints(("maccs",))(smiles).formulas
    masses = [adduct.mz(Formula.parse(formula).mass) for formula in formulas]
    peaks = [(20 + 9 * rng.random(4), rng.random(4) + 0.1) for _ in smiles]
    rows = zip(peaks, masses, formulas, smiles, strict=True)
    return [Spectrum(mz, i, mass, "[M+H]+", formula, text, text) for (mz, i), mass, formula, text in rows]


def _model_target(name: str, new: Callable[[], Any], *fits: Callable[[], tuple[Any, Any, Any]]) -> Target:
    """Return a target of models, which are fitted and saved; what is loaded predicts for new inputs."""

    def seeds() -> Iterator[Tree]:
        for fit in fits:
            model, inputs, outputs = fit()
            model = model.fit(inputs, outputs)
            model.calibrate(inputs, outputs)
            yield written(partial(_save_with_notes, model), "saved.psi")

    def use(model: Any) -> object:
        return model.predict(new()), model.predict_topk(new(), 2), model.embed(new())

    read = lambda folder: load_model(folder / "saved.psi")  # noqa: E731
    return _sealed_target(f"model-{name}", seeds, read, use)


def _save_with_notes(model: Any, path: Path) -> None:
    save_model(model, path, notes={"numbers": [1, 2.5]})


def _sealed_target(name: str, seeds: Any, read: Any, use: Any, **options: Any) -> Target:
    return Target(name, seeds, read, use, mutate=mutate_sealed, craft=craft_sealed, time=4e-5, **options)


def _pipelines() -> Iterator[Tree]:
    """Yield pipelines with all kinds of preprocessing, from a table of words and numbers."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), PCA(2))
    texts = FeatureUnion([("words", TfidfVectorizer()), ("hashed", HashingVectorizer(n_features=16))])
    kinds = [("texts", texts, 0), ("one", OneHotEncoder(min_frequency=2), [0, 1]), ("numbers", numbers, [2, 3])]
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    for columns in (ColumnTransformer(kinds), ColumnTransformer([("ordinal", ordinal, [1])], remainder="drop")):
        yield written(partial(_save_with_notes, make_pipeline(columns, IOKR(alpha=0.01)).fit(TABLE, TAGS)), "saved.psi")


@cache
def _embedding() -> Embedding:
    return Embedding(Linear(), X[:5, :3].copy(), np.eye(5)[:, :2].copy())


def _candidates() -> Iterator[Tree]:
    rows = np.where(X[:, :3] > 0, X[:, :3], 0)
    for outputs in (X[:, :3].copy(), sparse.csr_matrix(rows), sparse.csr_array(rows)):
        yield written(SharedCandidates(outputs, _embedding()).save)


def _use_candidates(candidates: SharedCandidates) -> object:
    return [np.asarray(g).sum() for _, g in candidates.blocks()], candidates.hash, candidates.outputs[0:2]


def _build_library(path: Path) -> CandidateLibrary:
    return CandidateLibrary.build(MoleculeList([*SMILES, "no molecule"], [f"m{i}" for i in range(13)]), path)


def _use_library(library: CandidateLibrary) -> object:
    library.verify()
    rows = library.find_formula("C2H6O"), library.find_mass(60.0575, ppm=50), slice(0, len(library)), [0]
    return [(library.get_smiles(r), library.get_names(r), library.bits[r]) for r in rows], library.fingerprints


@cache
def _library() -> CandidateLibrary:
    return _build_library(Path(tempfile.mkdtemp(prefix="psilearn-fuzz-library-")) / "library")


def _identifiers() -> Iterator[Tree]:
    identifier = MetaboliteIdentifier(n_unlabeled=4, calibration=0.25).fit(make_spectra(), _library())
    yield written(identifier.save, "saved.psi")


def _landmarks() -> tuple[Any, Any, Any]:
    landmarks: dict[str, Any] = {"input_landmarks": Landmarks(6, "uniform", 0), "output_landmarks": 5}
    kernels = Laplacian(), GaussianTanimoto(packed=True)
    return OEL(*kernels, alpha=1e-2, n_components=3, dtype="float32", **landmarks), X, PACKED


MODELS: tuple[Target, ...] = (
    _model_target(
        *("dense", lambda: X[:2]),
        lambda: (IOKR(Gaussian(0.3), Linear(), alpha=1e-3), X, X[:, :2]),
        lambda: (KDE(Laplacian(), Linear(), alpha=1e-2, n_components=2), X, X[:, :3]),
        lambda: (
            IOKR(Gaussian(0.5, uniform([Linear().normalized(), Gaussian(0.2) * Linear()])), alpha=0.01),
            X,
            X[:, 0],
        ),
    ),
    _model_target(
        *("csr", lambda: CSR[:2]),
        lambda: (IOKR(Linear(), Dice(), alpha=1e-3), CSR, sparse.csr_matrix(TAGS)),
        lambda: (OEL(Linear(), Linear(), alpha=1e-2, n_components=2), CSR, sparse.csr_array(X)),
    ),
    _model_target(
        "rankings", lambda: X[:2], lambda: (OEL(Gaussian(0.3), Kemeny(), alpha=1e-3, n_components=3), X, RANKS)
    ),
    _model_target(
        "objects", lambda: X[:2], lambda: (IOKR(Gaussian(0.3), Kemeny(items=("a", "b", "c")), alpha=1e-3), X, ORDERS)
    ),
    _model_target("landmarks", lambda: X[:2], _landmarks),
    _model_target(
        "precomputed",
        lambda: np.arange(2),
        lambda: (IOKR(Precomputed(X @ X.T), Linear(), alpha=0.01), np.arange(12), X),
    ),
    _model_target(
        *("spectra", lambda: make_spectra()[:2]),
        lambda: (
            OEL(spectrum_kernel(), GaussianTanimoto(packed=True), alpha=1e-3, n_components=3),
            make_spectra(),
            PACKED,
        ),
    ),
    _sealed_target(
        *("model-identifier", _identifiers, lambda folder: MetaboliteIdentifier.load(folder / "saved.psi")),
        lambda identifier: identifier.predict(make_spectra()[:2], _library()),
        prepare=_library,
    ),
    _sealed_target(
        *("model-pipeline", _pipelines, lambda folder: load_model(folder / "saved.psi")),
        lambda pipeline: pipeline.predict(TABLE[:2]),
    ),
    _sealed_target(
        *("candidates", _candidates, lambda folder: SharedCandidates.load(folder, _embedding()), _use_candidates),
        is_folder=True,
    ),
    _sealed_target(
        *("library", lambda: [written(_build_library)], CandidateLibrary.open, _use_library), is_folder=True
    ),
)
