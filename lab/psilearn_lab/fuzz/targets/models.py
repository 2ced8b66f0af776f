"""Folders with a manifest: saved models, stored candidates and libraries of molecules."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

import psilearn_chem.codecs  # noqa: F401  registers spectra, also where psilearn is not installed
from psilearn import IOKR, KDE, OEL, Landmarks, load_model, save_model
from psilearn.decoding import SharedCandidates
from psilearn.embedding import Embedding
from psilearn.kernels import Dice, Gaussian, GaussianTanimoto, Kemeny, Laplacian, Linear, Precomputed, uniform
from psilearn_chem import CandidateLibrary, MetaboliteIdentifier, MoleculeList, Spectrum
from psilearn_chem.molecules import Adduct, Formula
from psilearn_chem.spectrum_kernels import spectrum_kernel
from psilearn_lab.fuzz.target import Target
from psilearn_lab.fuzz.targets.seeds import new_seed

SMILES = ["CCO", "COC", "CCC", "CCN", "CCCO", "COCC", "CC(C)O", "c1ccccc1", "CC(=O)O", "OCCO", "CCCC", "CC(C)C"]
assert torch  # imported before the process is forked: a device in a damaged model would import it
X = np.random.default_rng(0).standard_normal((12, 4))
TAGS = (np.random.default_rng(1).random((12, 6)) < 0.4).astype(np.int8)
ORDERS = ["a>b>c", "b>c>a", "c>b>a", "a>c>b", "b>a>c", "c>a>b"] * 2


def make_spectra() -> list[Spectrum]:
    """Return one artificial spectrum per molecule."""
    rng = np.random.default_rng(2)
    formulas = [
        "C2H6O",
        "C2H6O",
        "C3H8",
        "C2H7N",
        "C3H8O",
        "C3H8O",
        "C3H8O",
        "C6H6",
        "C2H4O2",
        "C2H6O2",
        "C4H10",
        "C4H10",
    ]
    adduct = Adduct.parse("[M+H]+")
    return [
        Spectrum(20 + 9 * rng.random(4), rng.random(4) + 0.1, adduct.mz(Formula.parse(f).mass), "[M+H]+", f, s, f"s{i}")
        for i, (s, f) in enumerate(zip(SMILES, formulas, strict=True))
    ]


def _save(*models: tuple[Any, Any, Any]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for model, inputs, outputs in models:
            fitted = model.fit(inputs, outputs)
            fitted.calibrate(inputs, outputs)
            save_model(fitted, new_seed(folder), notes={"numbers": [1, 2.5]})

    return write


def _predict(inputs: Any) -> Callable[[Any], object]:
    def use(model: Any) -> object:
        return model.predict(inputs), model.predict_topk(inputs, 2), model.embed(inputs)

    return use


def _model_target(name: str, inputs: Any, *models: tuple[Any, Any, Any]) -> Target:
    return Target(f"model-{name}", _save(*models), load_model, _predict(inputs), is_folder=True)


@cache
def _embedding() -> Embedding:
    return Embedding(Linear(), X[:5, :3].copy(), np.eye(5)[:, :2].copy())


def _write_candidates(folder: Path) -> None:
    SharedCandidates(X[:, :3].copy(), _embedding()).save(new_seed(folder))
    SharedCandidates(sparse.csr_matrix(np.where(X[:, :3] > 0, X[:, :3], 0)), _embedding()).save(new_seed(folder))
    SharedCandidates(sparse.csr_array(np.where(X[:, :3] > 0, X[:, :3], 0)), _embedding()).save(new_seed(folder))


def _use_candidates(candidates: SharedCandidates) -> object:
    values = [np.asarray(g).sum() for _, g in candidates.blocks()]
    return values, candidates.hash, candidates.outputs[0:2]


def _build_library(path: Path) -> CandidateLibrary:
    return CandidateLibrary.build(MoleculeList([*SMILES, "no molecule"], [f"m{i}" for i in range(13)]), path)


def _write_library(folder: Path) -> None:
    _build_library(new_seed(folder))


def _use_library(library: CandidateLibrary) -> object:
    library.verify()
    rows = (
        library.find_formula("C2H6O"),
        library.find_mass(60.0575, ppm=50),
        slice(0, len(library)),
        [0, len(library) - 1],
    )
    return [(library.get_smiles(r), library.get_names(r), library.bits[r]) for r in rows], library.fingerprints


def _write_identifier(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as path:
        library = _build_library(Path(path) / "library")
        identifier = MetaboliteIdentifier(n_unlabeled=4, calibration=0.25).fit(make_spectra(), library)
        identifier.save(new_seed(folder))


@cache
def _library() -> CandidateLibrary:
    return _build_library(Path(tempfile.mkdtemp(prefix="psilearn-fuzz-library-")) / "library")


def _use_identifier(identifier: MetaboliteIdentifier) -> object:
    return identifier.predict(make_spectra()[:2], _library())


TARGETS = (
    _model_target(
        "dense",
        X[:2],
        (IOKR(Gaussian(0.3), Linear(), alpha=1e-3), X, X[:, :2]),
        (KDE(Laplacian(), Linear(), alpha=1e-2, n_components=2), X, X[:, :3]),
        (IOKR(Gaussian(0.5, uniform([Linear().normalized(), Gaussian(0.2) * Linear()])), None, alpha=1e-2), X, X[:, 0]),
    ),
    _model_target(
        "csr",
        sparse.csr_matrix(TAGS[:2].astype(float)),
        (IOKR(Linear(), Dice(), alpha=1e-3), sparse.csr_matrix(TAGS.astype(float)), sparse.csr_matrix(TAGS)),
        (
            OEL(Linear(), Linear(), alpha=1e-2, n_components=2),
            sparse.csr_matrix(TAGS.astype(float)),
            sparse.csr_array(X),
        ),
    ),
    _model_target(
        "rankings",
        X[:2],
        (OEL(Gaussian(0.3), Kemeny(), alpha=1e-3, n_components=3), X, np.argsort(np.argsort(X, axis=1), axis=1) + 1),
    ),
    _model_target(
        "objects",
        X[:2],
        (IOKR(Gaussian(0.3), Kemeny(items=("a", "b", "c")), alpha=1e-3), X, ORDERS),
    ),
    _model_target(
        "landmarks",
        X[:2],
        (
            OEL(
                Laplacian(),
                GaussianTanimoto(packed=True),
                alpha=1e-2,
                n_components=3,
                input_landmarks=Landmarks(6, "uniform", 0),
                output_landmarks=5,
                dtype="float32",
            ),
            X,
            np.packbits(TAGS, axis=1),
        ),
    ),
    _model_target("precomputed", np.arange(2), (IOKR(Precomputed(X @ X.T), Linear(), alpha=1e-2), np.arange(12), X)),
    Target(
        "model-spectra",
        lambda folder: _save(
            (
                OEL(spectrum_kernel(), GaussianTanimoto(packed=True), alpha=1e-3, n_components=3),
                make_spectra(),
                np.packbits(TAGS, axis=1),
            )
        )(folder),
        load_model,
        lambda model: _predict(make_spectra()[:2])(model),
        is_folder=True,
    ),
    Target(
        "model-identifier",
        _write_identifier,
        MetaboliteIdentifier.load,
        _use_identifier,
        is_folder=True,
        prepare=_library,
    ),
    Target(
        "candidates",
        _write_candidates,
        lambda folder: SharedCandidates.load(folder, _embedding()),
        _use_candidates,
        is_folder=True,
    ),
    Target(
        "library",
        _write_library,
        CandidateLibrary.open,
        _use_library,
        is_folder=True,
    ),
)
