"""Evidence of pairs of single spectra: conditions, counts by a loop, and sums over pairs."""

from dataclasses import replace

import numpy as np
import pytest

from psilearn_chem.metabolites.notes import from_notes, to_notes
from psilearn_chem.metabolites.reference_evidence import (
    N_RELATIONS,
    Conditions,
    FormulaRecords,
    Pairs,
    RecordEvidence,
    ReferenceEvidence,
    fit_record_evidence,
)
from psilearn_chem.spectra import Spectrum


def make_spectrum(**metadata):
    return Spectrum([50.0], [1.0], metadata=metadata)


def test_conditions_are_read_from_metadata():
    conditions = Conditions.of(
        [
            make_spectrum(instrument="Q Exactive Plus Orbitrap", collision_energy="35 % (nominal)"),
            make_spectrum(instrument="TripleTOF 5600 SCIEX", collision_energy="20 eV"),
            make_spectrum(instrument_family="QTOF", collision_energy="Ramp 5-60 V"),
            make_spectrum(instrument="Q Exactive", collision_energy="30(NCE)"),
            make_spectrum(),
        ]
    )
    assert conditions.kinds.tolist() == ["orbitrap", "tof", "tof", "orbitrap", ""]
    np.testing.assert_array_equal(conditions.energies, [35, 20, 32.5, 30, np.nan])
    assert conditions.is_relative.tolist() == [True, False, False, True, False]
    relation = conditions.relate(conditions)
    np.testing.assert_array_equal(relation, relation.T)
    assert relation[0, 3] == 0  # same kind, energies within 5 %
    assert relation[1, 2] == 1  # within 20 eV
    assert relation[0, 1] == 7  # percent and eV cannot be compared
    assert relation[4, 4] == 7  # nothing is known
    far = Conditions.of([make_spectrum(instrument="QTOF", collision_energy=text) for text in ("10 eV", "60")])
    assert far.relate(far).tolist() == [[0, 2], [2, 0]]
    assert not conditions.share_instrument(conditions)[2:, 2:][[0, 2], [0, 2]].any()  # no instrument is stated


def test_conditions_are_saved():
    conditions = Conditions.of([make_spectrum(instrument="QTOF", collision_energy="9 eV"), make_spectrum()])
    loaded = from_notes(Conditions, to_notes(conditions))
    np.testing.assert_array_equal(loaded.relate(conditions), conditions.relate(conditions))
    with pytest.raises(ValueError, match="lengths"):
        from_notes(Conditions, {**to_notes(conditions), "kinds": ["tof"]})


def test_evidence_adds_up_over_pairs():
    ratios = tuple(ReferenceEvidence((0.0, 1.0), (-1.0, 1.0 + i)) for i in range(N_RELATIONS))
    evidence = RecordEvidence(ratios)
    similarity, relation = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 1.0]]), np.array([[0, 1, 2], [7, 0, 3]])
    total = sum(float(ratios[r]([s])[0]) for s, r in zip(similarity.ravel(), relation.ravel(), strict=True))
    assert evidence(Pairs(similarity, relation)) == pytest.approx(total / np.sqrt(6))
    once = evidence(Pairs(np.array([[0.9]]), np.array([[0]])))
    assert evidence(Pairs(np.full((2, 2), 0.9), np.zeros((2, 2), dtype=int))) == pytest.approx(2 * once)


def draw_formula(rng, number, relation):
    """Return four records of two molecules; similarities of the same molecule are high if energies are close."""
    molecules = np.array([2 * number, 2 * number, 2 * number + 1, 2 * number + 1])
    energies = np.array([10.0, 10.0, 10.0, 10.0]) if relation == 0 else np.array([10.0, 90.0, 10.0, 90.0])
    same = molecules[:, None] == molecules
    similarity = np.where(same, rng.beta(8 if relation == 0 else 2, 2, (4, 4)), rng.beta(2, 8, (4, 4)))
    similarity = (similarity + similarity.T) / 2
    conditions = Conditions(np.array(["A", "B", "A", "B"]), np.full(4, "tof"), energies, np.zeros(4, dtype=bool))
    return FormulaRecords(molecules, similarity, conditions)


def test_evidence_is_learned_for_each_relation():
    rng = np.random.default_rng(0)
    records = [draw_formula(rng, i, 2 * (i % 2)) for i in range(400)]
    evidence = fit_record_evidence(records)
    close, far = evidence.ratios[0], evidence.ratios[2]
    assert close([0.9])[0] > far([0.9])[0] > 0 > far([0.1])[0] > close([0.1])[0]
    for number in (1, 3, 4, 5, 6, 7):  # without pairs: the ratio of all pairs
        assert evidence.ratios[number] == evidence.ratios[1]


def test_too_few_pairs_use_the_fallback():
    rng, fallback = np.random.default_rng(0), ReferenceEvidence((0.0, 1.0), (-3.0, 3.0))
    records = [draw_formula(rng, i, 0) for i in range(400)]
    assert fit_record_evidence(records, fallback) == fit_record_evidence(records)
    one_instrument = [
        replace(part, conditions=replace(part.conditions, instruments=np.full(4, "A"))) for part in records
    ]
    assert set(fit_record_evidence(one_instrument, fallback).ratios) >= {fallback}


ORBITRAPS = """LC-ESI-QFT; LC-ESI-ITFT; ESI-LITFT; Q-FT; LTQ FT; FTICR; Bruker Apex QE 12T FT-ICR; FTMS; Hybrid FT;
Q Exactive; Q-Exactive +; QExactive HF; Exploris 240; LTQ Orbitap Velos; Orbitrap ID-X Tribrid; Fusion Lumos;
LTQFT; Bruker solariX"""
TOFS = """LC-ESI-QTOF; LC-ESI-ITTOF; maXis 4G (Bruker); Bruker maXis Impact; Bruker impact HD; compact; timsTOF; Vion;
API QSTAR Pulsar i; LCT Micromass; Synapt G2; Xevo G2 XS; X500R; Agilent 6530; 6550 (Agilent Technologies);
Agilent G6545; G6530A; Agilent Technologies 6540; Xevo G3; Bruker compact"""
OTHERS = """Compact mass spectrometer (QqQ); software compact; N/A; LC-ESI-QQ; LC-ESI-IT; LTQ Velos; Xevo TQ-S;
Agilent 6495; Microsoft; API 3000"""


@pytest.mark.parametrize(("kind", "instruments"), [("orbitrap", ORBITRAPS), ("tof", TOFS), ("", OTHERS)])
def test_instruments_and_their_types_are_of_a_kind(kind, instruments):
    for name in map(str.strip, instruments.split(";")):
        for field in ("instrument", "instrument_type"):
            assert Conditions.of([make_spectrum(**{field: name})]).kinds.tolist() == [kind], name


def test_pairs_of_two_molecules_count_once_and_those_of_one_instrument_not_at_all():
    rng = np.random.default_rng(1)
    records = [draw_formula(rng, i, 0) for i in range(200)]
    repeated = []
    for part in records:  # each record twice: as many pairs of molecules, with the same similarities
        rows = np.repeat(np.arange(4), 2)
        conditions = part.conditions.take(rows)
        repeated.append(FormulaRecords(part.molecules[rows], part.similarity[np.ix_(rows, rows)], conditions))
    once, twice = fit_record_evidence(records), fit_record_evidence(repeated)
    np.testing.assert_allclose(twice.ratios[0].log_ratios, once.ratios[0].log_ratios, atol=1e-9)
    same, other = [], []
    for part in records:
        for i in range(4):
            for j in range(i):
                values = same if part.molecules[i] == part.molecules[j] else other
                values.append((part.similarity[i, j], 1 if values is same else 0.25))
    columns = (np.array(pairs).T for pairs in (same, other))
    counts = [np.histogram(value, bins=np.linspace(0, 1, 21), weights=weight)[0] for value, weight in columns]
    expected = ReferenceEvidence._of_counts(*counts)
    np.testing.assert_allclose(once.ratios[0].log_ratios, expected.log_ratios, atol=1e-9)
