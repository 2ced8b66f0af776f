"""Ranked molecules as mzTab-M 2.0, the format in which metabolomics repositories and tools exchange identifications."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from psilearn import __version__
from psilearn.utils import open_text_atomically
from psilearn_chem.metabolites.ranking import Ranking
from psilearn_chem.molecules import Adduct, CandidateLibrary, Formula
from psilearn_chem.spectra.records import retention_seconds

NULL = "null"
ADDUCT = re.compile(r"\[\d*M([+-]\w+)*\]\d*[+-]")  # of the specification
SUMMARY_COLUMNS = (
    *("SML_ID", "SMF_ID_REFS", "database_identifier", "chemical_formula", "smiles", "inchi", "chemical_name", "uri"),
    *("theoretical_neutral_mass", "adduct_ions", "reliability", "best_id_confidence_measure"),
    *("best_id_confidence_value", "abundance_assay[1]", "abundance_study_variable[1]"),
    "abundance_variation_study_variable[1]",
)
FEATURE_COLUMNS = (
    *("SMF_ID", "SME_ID_REFS", "SME_ID_REF_ambiguity_code", "adduct_ion", "isotopomer", "exp_mass_to_charge", "charge"),
    *("retention_time_in_seconds", "retention_time_in_seconds_start", "retention_time_in_seconds_end"),
    *("abundance_assay[1]", "opt_global_spectrum_name"),
)
EVIDENCE_COLUMNS = (
    *("SME_ID", "evidence_input_id", "database_identifier", "chemical_formula", "smiles", "inchi", "chemical_name"),
    *("uri", "derivatized_form", "adduct_ion", "exp_mass_to_charge", "charge", "theoretical_mass_to_charge"),
    *("spectra_ref", "identification_method", "ms_level", "id_confidence_measure[1]", "rank"),
    "opt_global_spectrum_name",
)
MEASURE = "[, , squared distance in the output space, ]"
METHOD = f"[, , psilearn, {__version__}]"
MS_LEVEL = "[MS, MS:1000511, ms level, 2]"
NOT_QUANTIFIED = "[, , no quantification, ]"
POLARITIES = {1: "[MS, MS:1000130, positive scan, ]", -1: "[MS, MS:1000129, negative scan, ]"}
SEVERAL_MOLECULES = 1  # ambiguity code of mzTab-M
HEADERS = {"SML": ("SMH", SUMMARY_COLUMNS), "SMF": ("SFH", FEATURE_COLUMNS), "SME": ("SEH", EVIDENCE_COLUMNS)}


class MzTab:
    """An mzTab-M file: one summary and one feature per spectrum, and one evidence per ranked molecule.

    The file begins with the polarities of all spectra and has three sections, which are kept in temporary files until
    it is complete. The numbers that mzTab-M requires of a feature are null for a spectrum without adduct or precursor
    m/z.
    """

    def __init__(self, library: CandidateLibrary, title: str, sections: Mapping[str, TextIO]) -> None:
        self._library = library
        self._title = title
        self._sections = sections
        self._n_evidence = 0
        self._signs: set[int] = set()

    def add(self, number: int, ranking: Ranking) -> None:
        """Add the lines of a ranking."""
        evidence = _list_evidence(number, self._n_evidence, ranking, self._library)
        self._n_evidence += len(evidence)
        self._signs.add(1 if _signed_charge(ranking.spectrum.adduct) >= 0 else -1)
        rows = {
            "SML": [_make_summary(number, ranking, evidence)],
            "SMF": [_make_feature(number, ranking, [row[0] for row in evidence])],
            "SME": evidence,
        }
        for prefix, lines in rows.items():
            self._sections[prefix].writelines(f"{_format_line([prefix, *line])}\n" for line in lines)

    def write_to(self, file: TextIO) -> None:
        """Write the complete file."""
        file.writelines(f"{line}\n" for line in _list_metadata(self._signs or {1}, self._library, self._title))
        for prefix, (header, columns) in HEADERS.items():
            file.write(f"\n{_format_line([header, *columns])}\n")
            self._sections[prefix].seek(0)
            shutil.copyfileobj(self._sections[prefix], file)

    @classmethod
    @contextmanager
    def open(cls, path: Path, library: CandidateLibrary, title: str) -> Iterator[MzTab]:
        """Open a file, which is written at the end; if that is not reached, the previous file stays unchanged."""
        with ExitStack() as stack:
            sections = {
                prefix: stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", newline=""))
                for prefix in HEADERS
            }
            table = cls(library, title, sections)
            yield table
            with open_text_atomically(path) as file:
                table.write_to(file)


def format_mztab(rankings: Iterable[Ranking], library: CandidateLibrary, title: str = "spectra") -> str:
    """Return rankings as the text of an mzTab-M file."""
    table = MzTab(library, title, {prefix: io.StringIO() for prefix in HEADERS})
    for number, ranking in enumerate(rankings, 1):
        table.add(number, ranking)
    text = io.StringIO()
    table.write_to(text)
    return text.getvalue()


def _list_metadata(signs: set[int], library: CandidateLibrary, title: str) -> list[str]:
    """Return the lines of the metadata, in the order of the specification; ``signs`` are those of the charges."""
    polarities = enumerate((POLARITIES[sign] for sign in sorted(signs, reverse=True)), 1)
    fields = {
        "mzTab-version": "2.0.0-M",
        "mzTab-ID": f"psilearn-{library.hash[:16]}",
        "title": title,
        "software[1]": METHOD,
        "quantification_method": NOT_QUANTIFIED,
        "ms_run[1]-location": NULL,
        **{f"ms_run[1]-scan_polarity[{number}]": polarity for number, polarity in polarities},
        "assay[1]": "assay 1",
        "assay[1]-ms_run_ref": "ms_run[1]",
        "study_variable[1]": "undefined",
        "study_variable[1]-assay_refs": "assay[1]",
        "study_variable[1]-description": "undefined",
        "cv[1]-label": "MS",
        "cv[1]-full_name": "PSI-MS controlled vocabulary",
        "cv[1]-version": "4.1.0",
        "cv[1]-uri": "https://purl.obolibrary.org/obo/ms.obo",
        "database[1]": "[, , library of candidate molecules, ]",
        "database[1]-prefix": "row",
        "database[1]-version": library.hash,
        "database[1]-uri": NULL,
        "small_molecule-quantification_unit": NOT_QUANTIFIED,
        "small_molecule_feature-quantification_unit": NOT_QUANTIFIED,
        "small_molecule-identification_reliability": "[MS, MS:1002896, compound identification confidence level, ]",
        "id_confidence_measure[1]": MEASURE,
    }
    return [_format_line(["MTD", name, value]) for name, value in fields.items()]


def _list_evidence(number: int, n_before: int, ranking: Ranking, library: CandidateLibrary) -> list[list[Any]]:
    rows = [int(row) for row in ranking.rows]
    molecules = zip(rows, library.get_formulas(rows), library.get_smiles(rows), library.get_names(rows), strict=True)
    spectrum = ranking.spectrum
    ion = None if spectrum.adduct is None else Adduct.parse(spectrum.adduct)
    source = f"ms_run[1]:index={number - 1}"
    ranks = np.searchsorted(ranking.ranks, ranking.ranks) + 1  # molecules that tie share the first rank
    return [
        [
            n_before + i + 1, source, f"row:{row}", formula, smiles, NULL, name, NULL, NULL,
            _ion(spectrum.adduct), spectrum.precursor_mz, _charge(spectrum.adduct),
            NULL if ion is None else f"{ion.mz(Formula.parse(formula).mass):.6f}",
            source, METHOD, MS_LEVEL, f"{ranking.distances[i]:.6f}", ranks[i], spectrum.name,
        ]
        for i, (row, formula, smiles, name) in enumerate(molecules)
    ]  # fmt: skip


def _make_feature(number: int, ranking: Ranking, evidence: Sequence[int]) -> list[Any]:
    spectrum = ranking.spectrum
    ambiguity = SEVERAL_MOLECULES if len(evidence) > 1 else NULL
    references = "|".join(map(str, evidence)) or NULL
    ion = [_ion(spectrum.adduct), NULL, spectrum.precursor_mz, _charge(spectrum.adduct)]
    times = [retention_seconds(spectrum), NULL, NULL]
    return [number, references, ambiguity, *ion, *times, NULL, spectrum.name]


def _make_summary(number: int, ranking: Ranking, evidence: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the line of a spectrum, with its nearest molecule."""
    identifier, formula, smiles, _, name = evidence[0][2:7] if evidence else [NULL] * 5
    mass = NULL if formula == NULL else f"{Formula.parse(formula).mass:.6f}"
    value = evidence[0][16] if evidence else NULL
    adduct = _ion(ranking.spectrum.adduct)
    reliability = 3  # a tentative candidate, without a reference standard
    name = name.replace("|", "/")  # separates the items of a list here
    molecule = [number, number, identifier, formula, smiles, NULL, name, NULL, mass]
    return [*molecule, adduct, reliability, MEASURE, value, NULL, NULL, NULL]


def _signed_charge(adduct: str | None) -> int:
    return 0 if adduct is None else Adduct.parse(adduct).charge


def _ion(adduct: str | None) -> str:
    """Return the adduct; null if mzTab-M cannot write it."""
    return adduct if adduct is not None and ADDUCT.fullmatch(adduct) else NULL


def _charge(adduct: str | None) -> int | str:
    """Return the number of charges: mzTab-M writes a positive number in both polarities."""
    return abs(_signed_charge(adduct)) or NULL


def _format_line(values: Iterable[Any]) -> str:
    """Join values by tabs; in texts, tabs and line ends become spaces."""
    texts = [NULL if value is None or value == "" else " ".join(str(value).split()) for value in values]
    return "\t".join(text or NULL for text in texts)
