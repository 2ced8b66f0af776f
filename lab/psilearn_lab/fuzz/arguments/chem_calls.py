"""Valid calls of the chemistry application, with four molecules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

import psilearn_chem as chem
from psilearn import IOKR
from psilearn.kernels import Tanimoto
from psilearn_lab.fuzz.arguments.attempts import Call, Fresh
from psilearn_lab.fuzz.arguments.model_calls import STARTS_PROCESSES
from psilearn_lab.fuzz.arguments.tiny_data import file_with, new_path

SMILES = ["CCO", "COC", "CCN", "CNC"]
NAMES = ["a", "b", "c", "d"]
MZ, INTENSITY = np.array([29.0, 31.0, 45.0]), np.array([1.0, 0.5, 0.2])
MGF = "BEGIN IONS\nPEPMASS=47.0491\nADDUCT=[M+H]+\nSMILES=CCO\n29.0 1.0\n31.0 0.5\nEND IONS\n"


def chem_calls() -> Iterator[Call]:
    """Yield the calls of readers, molecules, spectra, their kernels, libraries and the identifier."""
    yield from _molecule_calls()
    yield from _spectrum_calls()
    yield from _library_calls()
    yield from _identifier_calls()


def make_spectra() -> list[Any]:
    """Return one spectrum per molecule."""
    return [chem.Spectrum(MZ + 0.1 * i, INTENSITY, 47.0491, "[M+H]+", "C2H6O", s) for i, s in enumerate(SMILES[:2])]


def _edit_molecule(elements: Any, max_atoms: Any) -> Any:
    return chem.MoleculeEdits(elements, max_atoms=max_atoms)(chem.molecule_graph("CCO"))


@cache
def make_library() -> Any:
    """Build the library of the four molecules."""
    return chem.CandidateLibrary.build(chem.MoleculeList(SMILES, NAMES), new_path())


@cache
def make_model() -> Any:
    """Fit the smallest model on spectra and fingerprints."""
    spectra = make_spectra()
    bits = chem.Fingerprints()(SMILES[: len(spectra)]).bits
    return IOKR(chem.spectrum_kernel(), Tanimoto(packed=True)).fit(spectra, bits)


@cache
def make_identifier() -> Any:
    """Return the identifier with this model."""
    return chem.MetaboliteIdentifier.from_model(make_model(), chem.Fingerprints())


def _molecule_calls() -> Iterator[Call]:
    arguments: dict[str, Any]
    skipped: dict[str, Any]
    yield Call("psilearn_chem.Adduct.parse", chem.Adduct.parse, {"text": "[M+H]+"}, aliases={"text": ("adduct",)})
    yield Call("psilearn_chem.Formula.parse", chem.Formula.parse, {"text": "C2H6O"}, aliases={"text": ("formula",)})
    adduct = chem.Adduct.parse("[M+H]+")
    yield Call("psilearn_chem.Adduct.mz", adduct.mz, {"mass": 46.04})
    yield Call("psilearn_chem.Adduct.mass", adduct.mass, {"mz": 47.05})
    formula = chem.Formula.parse("C2H6O")
    yield Call("psilearn_chem.Adduct.ion_formula", adduct.ion_formula, {"formula": formula})
    yield Call("psilearn_chem.Fingerprints", _fingerprints, {"kinds": ("morgan", "maccs")})
    arguments = {"smiles": SMILES, "cache": None, "n_jobs": None}
    skipped = {**STARTS_PROCESSES, "cache": ("text",)}
    yield Call("psilearn_chem.Fingerprints.__call__", chem.Fingerprints(), arguments, not_attacked=skipped)
    yield Call("psilearn_chem.molecule_graph", chem.molecule_graph, {"molecule": "CCO", "kekulize": True})
    yield Call("psilearn_chem.molecule_graphs", chem.molecule_graphs, {"molecules": SMILES, "kekulize": True})
    yield Call("psilearn_chem.MoleculeEdits", _edit_molecule, {"elements": ["C", "O"], "max_atoms": 4})
    yield Call("psilearn_chem.graph_to_smiles", chem.graph_to_smiles, {"graph": chem.molecule_graph("CCO")})
    yield Call("psilearn_chem.read_molecules", chem.read_molecules, {"path": file_with("CCO a\nCOC b\n", ".smi")})


def _fingerprints(kinds: Any) -> Any:
    return chem.Fingerprints(kinds)(SMILES).bits


def _spectrum_calls() -> Iterator[Call]:
    arguments: dict[str, Any]
    cleaning: dict[str, Any]
    spectrum: dict[str, Any]
    spectrum = {"mz": MZ, "intensity": INTENSITY, "precursor_mz": 47.0491, "adduct": "[M+H]+", "formula": "C2H6O"}
    spectrum |= {"smiles": "CCO", "name": "a", "metadata": {"a": "b"}}
    yield Call(
        "psilearn_chem.Spectrum", chem.Spectrum, spectrum, aliases={"mz": ("m/z",), "intensity": ("intensities",)}
    )
    cleaning = {"above_precursor": 1.5, "around_precursor": None, "noise": 0.001, "max_peaks": 200, "min_peaks": 2}
    yield Call("psilearn_chem.Cleaning", _clean, cleaning, aliases=dict.fromkeys(cleaning, ("min_peaks",)))
    yield Call("psilearn_chem.Cleaning.__call__", chem.Cleaning(), {"spectrum": make_spectra()[0]})
    arguments = {"path": file_with(MGF, ".mgf"), "errors": "raise", "adduct": None, "cleaning": None}
    yield Call("psilearn_chem.read_spectra", chem.read_spectra, arguments)
    yield Call("psilearn_chem.iter_spectra", lambda **given: list(chem.iter_spectra(**given)), arguments)
    arguments = {"spectra": make_spectra(), "path": Fresh(lambda: new_path().with_suffix(".parquet"))}
    yield Call("psilearn_chem.write_parquet", chem.write_parquet, arguments, not_attacked={"path": ("text",)})
    yield Call("psilearn_chem.group_spectra", chem.group_spectra, {"spectra": make_spectra(), "by": "name"})
    arguments = {"spectra": make_spectra()[:1], "tolerance": 0.005}
    yield Call("psilearn_chem.merge_spectra", chem.merge_spectra, arguments)
    arguments = {"similarities": (0.2, 0.8), "log_ratios": (-1.0, 1.0)}
    yield Call("psilearn_chem.ReferenceEvidence", chem.ReferenceEvidence, arguments)
    arguments = {"same": np.array([0.8, 0.9]), "other": np.array([0.1, 0.3])}
    yield Call("psilearn_chem.ReferenceEvidence.fit", chem.ReferenceEvidence.fit, arguments)
    ratio = chem.ReferenceEvidence((0.2, 0.8), (-1.0, 1.0))
    yield Call("psilearn_chem.ReferenceEvidence.__call__", ratio, {"similarity": np.array([0.1, 0.5])})
    evaluate = partial(_evaluate, chem.spectrum_kernel)
    yield Call("psilearn_chem.spectrum_kernel", evaluate, {"gamma": 0.5, "width": 0.005, "unit": "Da"})
    arguments = {"of": "peaks", "width": 0.005, "unit": "Da", "power": 0.5}
    yield Call("psilearn_chem.ProbabilityProduct", partial(_evaluate, chem.ProbabilityProduct), arguments)
    yield Call("psilearn_chem.PrecursorMass", partial(_evaluate, chem.PrecursorMass), {"width": 50.0})
    arguments = {"of": "losses", "power": 0.5, "ppm": 10.0, "floor": 0.002}
    yield Call("psilearn_chem.SubformulaKernel", partial(_evaluate, chem.SubformulaKernel), arguments)
    features = chem.SubformulaFeatures
    yield Call("psilearn_chem.SubformulaFeatures", partial(_fit_features, features), arguments)
    yield Call("psilearn_chem.SubformulaFeatures.fit", features().fit, {"X": make_spectra()})
    yield Call("psilearn_chem.SubformulaFeatures.transform", _fit_features(features).transform, {"X": make_spectra()})


def _fit_features(make: Any, **parameters: Any) -> Any:
    return make(**parameters).fit(make_spectra())


def _clean(**parameters: Any) -> Any:
    return chem.Cleaning(**parameters)(make_spectra()[0])


def _evaluate(make: Any, **parameters: Any) -> Any:
    return make(**parameters).gram(make_spectra())


def _library_calls() -> Iterator[Call]:
    arguments: dict[str, Any]
    skipped: dict[str, Any]
    library = make_library()
    arguments = {"molecules": chem.MoleculeList(SMILES, NAMES), "path": Fresh(new_path), "fingerprints": None}
    build = partial(_build_library)
    skipped = {**STARTS_PROCESSES, "path": ("text",)}
    yield Call("psilearn_chem.CandidateLibrary.build", build, {**arguments, "n_jobs": None}, not_attacked=skipped)
    yield Call("psilearn_chem.CandidateLibrary.open", chem.CandidateLibrary.open, {"path": library.path})
    yield Call("psilearn_chem.CandidateLibrary.find_formula", library.find_formula, {"formula": "C2H6O"})
    yield Call("psilearn_chem.CandidateLibrary.find_mass", library.find_mass, {"mass": 46.04, "ppm": 10.0})
    yield Call(
        "psilearn_chem.Query",
        _find_candidates,
        {"by": "auto", "ppm": 10.0, "adducts": ("[M+H]+",)},
        aliases={"adducts": ("adduct",)},
    )


def _build_library(**arguments: Any) -> Any:
    return chem.CandidateLibrary.build(**arguments).bits


def _find_candidates(**parameters: Any) -> Any:
    return chem.Query(**parameters).find_candidates(make_spectra()[0], make_library())


def _identifier_calls() -> Iterator[Call]:
    arguments: dict[str, Any]
    others: dict[str, Any]
    arguments = {"spectra": make_spectra(), "library": make_library(), "query": None}
    others = {"k": 2, "coverage": 0.5, "ties": "expected", "whole_set": False}
    yield Call("psilearn_chem.MetaboliteIdentifier.predict", make_identifier().predict, arguments)
    rank = make_identifier().rank
    yield Call("psilearn_chem.MetaboliteIdentifier.rank", lambda **given: list(rank(**given)), {**arguments, **others})
    arguments = {"model": make_model(), "fingerprints": chem.Fingerprints(), "adducts": (), "training": {"a": 1}}
    yield Call("psilearn_chem.MetaboliteIdentifier.from_model", chem.MetaboliteIdentifier.from_model, arguments)
    saved = new_path()
    make_identifier().save(saved)
    yield Call("psilearn_chem.MetaboliteIdentifier.load", chem.MetaboliteIdentifier.load, {"path": saved})
