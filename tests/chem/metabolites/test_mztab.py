"""Rankings as mzTab-M."""

import pytest

from psilearn.chem.metabolites.mztab import format_mztab
from psilearn.chem.molecules import Adduct, Formula


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
