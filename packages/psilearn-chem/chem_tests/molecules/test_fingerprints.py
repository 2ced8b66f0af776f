"""Fingerprints: bits, the cache on disk, and SMILES that cannot be used."""

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator
from rdkit.Chem.rdMolDescriptors import GetMACCSKeysFingerprint

from chem_tests.chemistry import smiles_list
from psilearn.kernels import Tanimoto
from psilearn_chem.molecules import Fingerprints, fingerprints

SMILES = ["CCO", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O", "C[N+](C)(C)CCO", "OCC1OC(O)C(O)C(O)C1O"]


def test_bits_agree_with_rdkit():
    kinds = ("torsion", "morgan", "maccs", "path", "atompair")
    table = Fingerprints(kinds)(SMILES)
    assert table.bits.shape == (len(SMILES), Fingerprints(kinds).n_bytes)
    bits = np.unpackbits(table.bits, axis=1)[:, : Fingerprints(kinds).n_bits]
    generators = {
        "torsion": rdFingerprintGenerator.GetTopologicalTorsionGenerator(),
        "morgan": rdFingerprintGenerator.GetMorganGenerator(radius=2),
        "path": rdFingerprintGenerator.GetRDKitFPGenerator(),
        "atompair": rdFingerprintGenerator.GetAtomPairGenerator(),
    }
    start = 0
    for kind in kinds:
        width = fingerprints.N_BITS[kind]
        for row, smiles in zip(bits, SMILES, strict=True):
            molecule = Chem.MolFromSmiles(smiles)
            if kind == "maccs":
                expected = list(GetMACCSKeysFingerprint(molecule))[1:]
            else:
                expected = list(generators[kind].GetFingerprint(molecule))
            assert row[start : start + width].tolist() == expected
        start += width


def test_tanimoto_of_packed_bits_agrees_with_rdkit():
    table = Fingerprints(("morgan",))(SMILES)
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2)
    fingerprints = [generator.GetFingerprint(Chem.MolFromSmiles(smiles)) for smiles in SMILES]
    expected = [[DataStructs.TanimotoSimilarity(a, b) for b in fingerprints] for a in fingerprints]
    np.testing.assert_allclose(Tanimoto(packed=True)(table.bits), expected)


def test_cached_chunks_are_not_computed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprints, "CHUNK_SIZE", 40)
    smiles = [*smiles_list()[:100], "no molecule"]
    expected = Fingerprints()(smiles)
    computed = Fingerprints()(smiles, cache=tmp_path, n_jobs=1)
    assert len(list(tmp_path.glob("*.chunk"))) == 3
    monkeypatch.setattr(Fingerprints, "_compute_bits", None)  # a call would fail
    cached = Fingerprints()(smiles, cache=tmp_path)
    for table in (computed, cached):
        np.testing.assert_array_equal(table.bits, expected.bits)
        assert table.formulas == expected.formulas
        assert table.canonical_smiles == expected.canonical_smiles
        assert table.unreadable == [100]


def test_several_processes_compute_the_same():
    np.testing.assert_array_equal(Fingerprints()(SMILES, n_jobs=2).bits, Fingerprints()(SMILES).bits)


@pytest.mark.parametrize("bad", [(), ("ecfp",), ("maccs", "maccs")])
def test_invalid_kinds_are_rejected(bad):
    with pytest.raises(ValueError, match="kinds must be some of morgan"):
        Fingerprints(bad)


def test_unreadable_smiles_are_listed():
    table = Fingerprints()(["CCO", "C(", "", None, "*", "C1CC", "[13CH3]O"])
    assert table.unreadable == [1, 2, 3, 4, 5, 6]  # a dummy atom, an unclosed ring, an isotope label
    assert not table.bits[1:].any()
