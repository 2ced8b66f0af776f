"""Rankings as mzTab-M."""

from dataclasses import replace

import numpy as np
import pytest

from chem_tests.metabolites.mztab_rules import check_mztab
from psilearn_chem.metabolites.mztab import format_mztab
from psilearn_chem.molecules import Adduct, Formula


def test_every_line_has_its_columns_and_the_numbers_of_the_ranking(identifier, spectra, library):
    rankings = list(identifier.rank(spectra[:4], library, k=3))
    lines = [line.split("\t") for line in format_mztab(rankings, library, "a\tb\nc").splitlines() if line]
    sections = {}
    for line in lines:
        sections.setdefault(line[0], []).append(line[1:])
    assert ["title", "a b c"] in sections["MTD"] and len(sections["SML"]) == len(sections["SMF"]) == 4
    for header, prefix in (("SMH", "SML"), ("SFH", "SMF"), ("SEH", "SME")):
        assert {len(row) for row in sections[prefix]} == {len(sections[header][0])}
    columns = sections["SEH"][0]
    evidence = [dict(zip(columns, row, strict=True)) for row in sections["SME"]]
    distances = [distance for ranking in rankings for distance in ranking.distances]
    assert [float(row["id_confidence_measure[1]"]) for row in evidence] == pytest.approx(distances, abs=1e-6)
    smiles = [text for ranking in rankings for text in library.get_smiles([int(row) for row in ranking.rows])]
    assert [row["smiles"] for row in evidence] == smiles
    first = evidence[0]
    expected = Adduct.parse(first["adduct_ion"]).mz(Formula.parse(first["chemical_formula"]).mass)
    assert float(first["theoretical_mass_to_charge"]) == pytest.approx(expected, abs=1e-5)
    references = "|".join(sections["SMF"][i][1] for i in range(4)).split("|")
    assert references == [row["SME_ID"] for row in evidence]


def with_spectrum(ranking, **fields):
    spectrum = ranking.spectrum
    kept = {name: getattr(spectrum, name) for name in ("mz", "intensity", "precursor_mz", "adduct", "name")}
    return replace(ranking, spectrum=type(spectrum)(**{**kept, **fields}))


def test_files_follow_the_specification(identifier, spectra, library):
    rankings = list(identifier.rank(spectra[:4], library, k=3))
    rows = check_mztab(format_mztab(rankings, library))
    assert [row["opt_global_spectrum_name"] for row in rows["SMF"]] == [ranking.spectrum.name for ranking in rankings]
    # The same name twice, negative mode, an adduct that mzTab-M cannot write, and molecules at the same distance.
    count = len(rankings[0].rows)
    tied = replace(rankings[0], distances=np.full(count, 0.5), ranks=np.full(count, (1 + count) / 2))
    hard = [
        with_spectrum(tied, name="a", adduct="[M-H]-"),
        with_spectrum(rankings[1], name="a", adduct="[2M+2H]2+"),
        with_spectrum(rankings[2], name="", adduct="[M]+."),
    ]
    rows = check_mztab(format_mztab(hard, library))
    assert [row["charge"] for row in rows["SMF"]] == ["1", "2", "1"]
    assert [row["adduct_ion"] for row in rows["SMF"]] == ["[M-H]-", "[2M+2H]2+", "null"]
    assert {row["rank"] for row in rows["SME"] if row["evidence_input_id"] == "ms_run[1]:index=0"} == {"1"}
    text = format_mztab(hard, library)
    assert "scan_polarity[1]\t[MS, MS:1000130, positive scan, ]" in text
    assert "scan_polarity[2]\t[MS, MS:1000129, negative scan, ]" in text
    assert check_mztab(format_mztab([], library)) == {"SML": [], "SMF": [], "SME": []}


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        ("MTD\tquantification_method\t[, , no quantification, ]\n", "", "mandatory"),
        ("\tcharge\t", "\tcharges\t", "charges"),
        ("\tms_run[1]:index=0\t[", "\tnull\t[", "spectra_ref"),
        ("SMF\t1\t1|", "SMF\t1\t99|", "99"),
    ],
)
def test_the_rules_find_errors(identifier, spectra, library, pattern, replacement, message):
    text = format_mztab(list(identifier.rank(spectra[:2], library, k=3)), library)
    assert pattern in text
    with pytest.raises((AssertionError, KeyError), match=message):
        check_mztab(text.replace(pattern, replacement))
