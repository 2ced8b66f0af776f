"""Formulas, adducts, fingerprints, files of molecules, and the library on disk."""

import json

import numpy as np
import pytest

pytest.importorskip("rdkit", reason="molecules need the extra psilearn[chem]")
pytest.importorskip("pyarrow", reason="libraries need the extra psilearn[chem]")

from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator
from rdkit.Chem.rdMolDescriptors import CalcMolFormula, GetMACCSKeysFingerprint

from psilearn import OEL
from psilearn.chem.molecules import Adduct, CandidateLibrary, Fingerprints, Formula, fingerprints, library
from psilearn.chem.molecules.drawing import drawing
from psilearn.chem.molecules.molecule_files import MoleculeList, read_molecules
from psilearn.kernels import Gaussian, GaussianTanimoto, Tanimoto
from tests.chem.chemistry import build_library, smiles_list

SMILES = ["CCO", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O", "C[N+](C)(C)CCO", "OCC1OC(O)C(O)C(O)C1O"]


@pytest.mark.parametrize("smiles", SMILES)
def test_formula_and_mass_are_rdkits(smiles):
    molecule = Chem.MolFromSmiles(smiles)
    formula = Formula.parse(CalcMolFormula(molecule))
    assert str(formula) == CalcMolFormula(molecule)
    assert Formula.parse(str(formula)) == formula
    from rdkit.Chem.Descriptors import ExactMolWt

    assert formula.mass == pytest.approx(ExactMolWt(molecule), abs=1e-3 * abs(formula.charge) + 1e-6)


def test_hills_order():
    assert str(Formula.parse("O2NaH3C2")) == "C2H3NaO2"
    assert str(Formula.parse("OH2")) == "H2O"  # no carbon: the alphabet
    assert str(Formula.parse("ClHC3C3H4")) == "C6H5Cl"


@pytest.mark.parametrize("bad", ["", "glucose", "C6H12O6!", "Xx2", "[M+H]+", "12", None, "c6h6"])
def test_what_is_no_formula(bad):
    with pytest.raises(ValueError, match="not a"):
        Formula.parse(bad)


@pytest.mark.parametrize(
    ("adduct", "mz"),
    [
        ("[M+H]+", 181.070665),
        ("[M+Na]+", 203.052609),
        ("[M+K]+", 219.026547),
        ("[M+NH4]+", 198.097214),
        ("[M-H]-", 179.056112),
        ("[M+Cl]-", 215.032791),
        ("[M+HCOO]-", 225.061592),
        ("[M-H2O+H]+", 163.060101),
        ("[M+H-H2O]+", 163.060101),
        ("[M+2H]2+", 91.038971),
        ("[2M+H]+", 361.134053),
        ("[M]+", 180.062842),
        ("[M+ACN+H]+", 222.097214),
        ("[M+HAc-H]-", 239.077242),
        ("[M]+*", 180.062842),
        ("[M+2H]++", 91.038971),
        ("[M+2H]+2", 91.038971),
    ],
)
def test_adducts_of_glucose(adduct, mz):
    parsed, mass = Adduct.parse(adduct), Formula.parse("C6H12O6").mass
    assert parsed.mz(mass) == pytest.approx(mz, abs=2e-5)
    assert parsed.mass(parsed.mz(mass)) == pytest.approx(mass)
    assert str(parsed) == adduct


@pytest.mark.parametrize(
    ("loose", "strict"), [("M+H", "[M+H]+"), ("[M+H]", "[M+H]+"), ("M-H", "[M-H]-"), (" [M + Na]+", "[M+Na]+")]
)
def test_loose_writing_of_adducts(loose, strict):
    assert str(Adduct.parse(loose)) == strict


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "H+",
        "[M+Xx]+",
        "proton",
        "[M+]+",
        None,
        "[M+H]0+",
        "[0M+H]+",
        "[M+13C]+",
        "[M+Ac]-",
        "[M+Cl]",
        "[M-2H]",
        "M+FA",
    ],
)
def test_what_is_no_adduct(bad):
    with pytest.raises(ValueError, match="not a"):
        Adduct.parse(bad)


def test_fingerprints_are_rdkits():
    kinds = ("torsion", "morgan", "maccs", "path", "atompair")
    made = Fingerprints(kinds)(SMILES)
    assert made.bits.shape == (len(SMILES), Fingerprints(kinds).n_bytes)
    bits = np.unpackbits(made.bits, axis=1)[:, : Fingerprints(kinds).n_bits]
    makers = {
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
                expected = list(makers[kind].GetFingerprint(molecule))
            assert row[start : start + width].tolist() == expected
        start += width


def test_tanimoto_of_packed_fingerprints_is_rdkits():
    made = Fingerprints(("morgan",))(SMILES)
    maker = rdFingerprintGenerator.GetMorganGenerator(radius=2)
    prints = [maker.GetFingerprint(Chem.MolFromSmiles(smiles)) for smiles in SMILES]
    expected = [[DataStructs.TanimotoSimilarity(a, b) for b in prints] for a in prints]
    np.testing.assert_allclose(Tanimoto(packed=True)(made.bits), expected)


def test_the_cache_gives_what_was_computed(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprints, "CHUNK", 40)
    smiles = [*smiles_list()[:100], "no molecule"]
    plain = Fingerprints()(smiles)
    kept = Fingerprints()(smiles, cache=tmp_path, n_jobs=1)
    assert len(list(tmp_path.glob("*.npz"))) == 3
    monkeypatch.setattr(Fingerprints, "_of", None)  # nothing may be computed any more
    again = Fingerprints()(smiles, cache=tmp_path)
    for one in (kept, again):
        np.testing.assert_array_equal(one.bits, plain.bits)
        assert (one.formulas, one.canonical, one.unreadable) == (plain.formulas, plain.canonical, [100])


def test_a_damaged_chunk_is_computed_anew(tmp_path):
    plain = Fingerprints()(SMILES, cache=tmp_path)
    place = next(tmp_path.glob("*.npz"))
    place.write_bytes(place.read_bytes()[:100])
    np.testing.assert_array_equal(Fingerprints()(SMILES, cache=tmp_path).bits, plain.bits)
    np.testing.assert_array_equal(Fingerprints()(SMILES, cache=tmp_path).bits, plain.bits)


def test_processes_give_the_same(monkeypatch):
    np.testing.assert_array_equal(Fingerprints()(SMILES, n_jobs=2).bits, Fingerprints()(SMILES).bits)


@pytest.mark.parametrize("bad", [(), ("ecfp",), ("maccs", "maccs")])
def test_unknown_fingerprints(bad):
    with pytest.raises(ValueError, match="kinds must be some of morgan"):
        Fingerprints(bad)


def test_unreadable_smiles_are_listed():
    made = Fingerprints()(["CCO", "C(", "", None, "*", "C1CC", "[13CH3]O"])
    assert made.unreadable == [1, 2, 3, 4, 5, 6]  # the last has an isotope label
    assert not made.bits[1:].any()


# Files


def test_files_of_molecules(tmp_path):
    import pyarrow
    from pyarrow import parquet

    expected = MoleculeList(["CCO", "c1ccccc1"], ["ethanol", "benzene"])
    (tmp_path / "a.smi").write_text("# comment\nCCO ethanol\n\nc1ccccc1\tbenzene\n")
    (tmp_path / "a.csv").write_text("Name,SMILES\nethanol,CCO\nbenzene,c1ccccc1\n")
    (tmp_path / "a.tsv").write_text("smiles\tid\nCCO\tethanol\nc1ccccc1\tbenzene\n")
    parquet.write_table(pyarrow.table({"smiles": expected.smiles, "id": expected.names}), tmp_path / "a.parquet")
    with Chem.SDWriter(str(tmp_path / "a.sdf")) as writer:
        for smiles, name in zip(*expected, strict=True):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("_Name", name)
            writer.write(molecule)
    for ending in ("smi", "csv", "tsv", "parquet", "sdf"):
        assert read_molecules(tmp_path / f"a.{ending}") == expected


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "name,formula\nx,CH4\n", "no column smiles; it has name, formula"),
        ("a.smi", "# nothing\n", "holds no molecule"),
        ("a.mol2", "x", "molecules are read from"),
        ("a.parquet", "x", "not a Parquet file"),
        ("a.csv", "smiles\n" + "C" * 200_000, "not a text file in UTF-8"),
    ],
)
def test_files_that_hold_no_molecules(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=words):
        read_molecules(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_molecules(tmp_path / "absent.smi")


# Library


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build_library(tmp_path_factory.mktemp("library") / "lib")


def test_a_library_holds_every_molecule_once_by_formula(built):
    made = Fingerprints()(smiles_list())
    distinct = dict(zip(reversed(made.canonical), reversed(range(len(made.canonical))), strict=True))
    assert len(built) == len(distinct)
    assert built.manifest["repeated"] == len(made.canonical) - len(distinct)
    for formula in set(made.formulas):
        rows = built.of_formula(formula)
        expected = {smiles_list()[i] for i in distinct.values() if made.formulas[i] == formula}
        assert set(built.smiles(rows)) == expected
        assert set(built.formulas_of(rows)) == {formula}
        for row, smiles, name in zip(range(rows.start, rows.stop), built.smiles(rows), built.names(rows), strict=True):
            place = smiles_list().index(smiles)
            assert name == f"m{place}"
            np.testing.assert_array_equal(built.bits[row], made.bits[place])
    assert built.smiles([3, 0]) == [built.smiles(slice(3, 4))[0], built.smiles(slice(0, 1))[0]]


def test_a_window_of_masses_is_what_a_scan_finds(built):
    masses = np.repeat(built.masses, np.diff(built.starts))
    for mass in (*built.masses[::7], 150.0, 1.0, 1e6):
        for ppm in (1.0, 10.0, 1e5):
            rows = built.of_mass(mass, ppm)
            expected = np.flatnonzero(np.abs(masses - mass) <= 1e-6 * ppm * mass)
            assert np.arange(len(built))[rows].tolist() == expected.tolist()


def test_the_ends_of_a_window_belong_to_it(built):
    mass = float(built.masses[4])
    assert built.of_mass(mass, 0.0) == slice(int(built.starts[4]), int(built.starts[5]))
    for bad in ({"mass": -1.0}, {"mass": np.nan}, {"mass": 100.0, "ppm": -1.0}):
        with pytest.raises(ValueError, match="must be a finite number"):
            built.of_mass(**bad)


def test_unknown_formulas(built):
    assert built.of_formula("C60H2") == slice(0, 0)
    assert built.of_formula("H6C2O") == built.of_formula("C2H6O")
    with pytest.raises(ValueError, match="not a molecular formula"):
        built.of_formula("sugar")


def test_an_interrupted_build_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprints, "CHUNK", 50)
    monkeypatch.setattr(library, "CHUNK", 50)
    whole = build_library(tmp_path / "whole")
    computed = []
    ours = fingerprints.Fingerprints._of

    def fail_after_three(self, molecules):
        computed.append(len(molecules))
        if len(computed) > 3:
            raise KeyboardInterrupt
        return ours(self, molecules)

    monkeypatch.setattr(Fingerprints, "_of", fail_after_three)
    with pytest.raises(KeyboardInterrupt):
        build_library(tmp_path / "lib")
    with pytest.raises(ValueError, match="interrupted: build it again, it goes on"):
        CandidateLibrary.open(tmp_path / "lib")
    computed.clear()
    monkeypatch.setattr(Fingerprints, "_of", lambda self, molecules: computed.append(1) or ours(self, molecules))
    again = build_library(tmp_path / "lib")
    assert len(computed) == -(-len(smiles_list()) // 50) - 3
    assert again.hash == whole.hash
    assert not (tmp_path / "lib" / "unfinished").exists()


def test_unreadable_molecules_are_written_down(tmp_path):
    made = CandidateLibrary.build(MoleculeList(["CCO", "broken("], ["a", "b"]), tmp_path / "lib")
    assert (len(made), made.manifest["unreadable"]) == (1, 1)
    assert (tmp_path / "lib" / "unreadable.csv").read_text().splitlines() == ["record,name,smiles", "2,b,broken("]
    with pytest.raises(ValueError, match="None of the 1 molecules"):
        CandidateLibrary.build(MoleculeList(["x"], [""]), tmp_path / "none")


def test_folders_of_others_are_left_alone(tmp_path, built):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    with pytest.raises(FileExistsError, match="something else"):
        CandidateLibrary.build(MoleculeList(["CCO"], [""]), tmp_path / "mine")
    with pytest.raises(FileExistsError, match="library already"):
        CandidateLibrary.build(MoleculeList(["CCO"], [""]), built.path)
    assert (tmp_path / "mine" / "file").read_text() == "x"
    (tmp_path / "thesis" / "unfinished").mkdir(parents=True)
    (tmp_path / "thesis" / "unfinished" / "chapter").write_text("x")
    with pytest.raises(FileExistsError, match="something else"):
        CandidateLibrary.build(MoleculeList(["CCO"], [""]), tmp_path / "thesis")
    with pytest.raises(FileNotFoundError):
        CandidateLibrary.build(tmp_path / "absent.smi", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: (path / "manifest.json").write_text("{"),
        lambda path: (path / "manifest.json").write_text("[]"),
        lambda path: (path / "manifest.json").write_text(json.dumps({"format": "other", "version": 1})),
        lambda path: (path / "fingerprints.npy").write_bytes(b"x"),
        lambda path: (path / "formulas.json").unlink(),
        lambda path: (path / "formulas.json").write_text(
            (path / "formulas.json").read_text().replace(", 0]", ", 9]", 1)
        ),
        lambda path: (path / "molecules.arrow").write_bytes((path / "molecules.arrow").read_bytes()[:-9]),
        lambda path: (path / "manifest.json").unlink(),
    ],
)
def test_damaged_libraries_are_refused(tmp_path, damage):
    build_library(tmp_path / "lib")
    damage(tmp_path / "lib")
    with pytest.raises(ValueError, match="no library of candidates"):
        CandidateLibrary.open(tmp_path / "lib")


def test_changed_files_are_found_by_their_hash(tmp_path):
    made = build_library(tmp_path / "lib")
    made.verify()
    content = bytearray((made.path / "fingerprints.npy").read_bytes())
    content[-1] ^= 1
    (made.path / "fingerprints.npy").write_bytes(content)
    with pytest.raises(ValueError, match="was changed"):
        CandidateLibrary.open(made.path).verify()


def test_embeddings_are_built_once_a_model(tmp_path):
    made = build_library(tmp_path / "lib")
    X = np.linspace(0, 1, 30)[:, None]
    model = OEL(Gaussian(5.0), GaussianTanimoto(packed=True), n_components=7).fit(X, made.bits[:30])
    assert made.embedded(model) is None
    embedded = made.embedded(model, build=True)
    np.testing.assert_allclose(embedded.g, model.transform_outputs(np.asarray(made.bits)))
    again = CandidateLibrary.open(made.path).embedded(model)
    np.testing.assert_array_equal(again.g, embedded.g)
    other = OEL(Gaussian(5.0), GaussianTanimoto(packed=True), n_components=3).fit(X, made.bits[:30])
    assert made.embedded(other) is None
    assert not list((made.path / "embeddings").glob("*/outputs.npy"))  # the fingerprints are there already


def test_drawings_are_svg_without_colours_of_their_own():
    text = drawing("CC(=O)Oc1ccccc1C(=O)O")
    assert text.startswith("<svg")
    assert "currentColor" in text
    assert "#000000" not in text
    assert drawing("no molecule") == ""
