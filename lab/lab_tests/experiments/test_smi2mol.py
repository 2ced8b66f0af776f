"""SMI2Mol: texts and splits of molecules, characters at positions, and predictions that parse no SMILES."""

import itertools

import numpy as np
import pytest
from sklearn.utils import Bunch

pytest.importorskip("rdkit")

from rdkit import Chem

from psilearn.kernels import Gaussian
from psilearn.metrics import graph_edit_distance
from psilearn_chem import molecule_graphs
from psilearn_lab import datasets
from psilearn_lab.experiments import smi2mol
from psilearn_lab.experiments.experiment import Context
from psilearn_lab.experiments.smi2mol import CHARACTERS, Task, nearest_graphs, one_hot, remove_stereo

SETTING = smi2mol.Setting(max_length=3, gamma=0.5, alpha=1e-5, depth=2, normalize_depths=True)
CONFIG = {**smi2mol.CONFIG, **smi2mol.QUICK}


@pytest.fixture
def chains(monkeypatch):
    """Let the loader return chains of five and six atoms."""
    smiles = ["".join(atoms) for size in (5, 6) for atoms in itertools.product("CNO", repeat=size)]
    monkeypatch.setattr(datasets, "load", lambda name: Bunch(smiles=smiles))
    return smiles


def make_context(**options):
    return Context(CONFIG, 0, None, lambda text: None, **options)


@pytest.mark.parametrize("smiles", ["C[C@H](O)F", "C/C=C\\C", "N[C@@H](C)C(=O)O", "CC(=O)[O-]", "[NH3+]C[C@]1(C)CO1"])
def test_without_marks_of_stereochemistry_the_graph_is_the_same(smiles):
    plain = remove_stereo(smiles)
    assert not set(plain) & set("@/\\")
    assert molecule_graphs([plain]) == molecule_graphs([smiles])


def test_a_split_is_random_without_repetitions(chains):
    task = Task.load({**CONFIG, "unlabeled": 50}, 0, None)
    parts = [task.test, task.validation, task.train, task.unlabeled]
    assert [len(part) for part in parts] == [CONFIG["tests"], CONFIG["validation"], CONFIG["pairs"], 50]
    texts = [text for part in parts for text in part.texts]
    assert len(set(texts)) == len(texts)
    assert texts != [f"^{smiles}$" for smiles in chains[: len(texts)]]
    for part in parts:
        assert part.graphs == molecule_graphs([text[1:-1] for text in part.texts])
    assert Task.load(CONFIG, 0, None).train.texts == task.train.texts
    assert Task.load(CONFIG, 1, None).train.texts != task.train.texts


@pytest.fixture
def forbid_parsing(monkeypatch):
    """Return a function after whose call RDKit parses no SMILES."""

    def refuse(*_, **__):
        raise AssertionError("a SMILES is parsed")

    def forbid():
        for name in ("MolFromSmiles", "MolFromSmarts", "MolFromSmilesFragment"):
            monkeypatch.setattr(Chem, name, refuse, raising=False)

    return forbid


@pytest.mark.parametrize("method", ["IOKR", "OEL₀", "OEL", "IOKR, network"])
def test_no_prediction_parses_a_smiles(chains, forbid_parsing, method):
    if method.endswith(smi2mol.NETWORK):
        pytest.importorskip("torch")
    task = Task.load({**CONFIG, "unlabeled": 50}, 0, None)
    forbid_parsing()
    model = smi2mol.fit(method, SETTING, task.train, task.unlabeled, CONFIG, make_context())
    decoded = smi2mol.decode(model, task.test, 2, None)
    assert list(decoded) == list(smi2mol.DECODERS)
    assert all(np.isfinite(float(mean)) for result in decoded.values() for mean in result.distances.values())


def test_the_nearest_smiles_has_the_largest_kernel_with_any_base_and_is_not_parsed(chains, forbid_parsing):
    task = Task.load(CONFIG, 0, None)
    forbid_parsing()
    predicted = nearest_graphs(task.train, task.test.texts, smi2mol.make_text_kernel(3, CONFIG))
    for base in (None, Gaussian(0.5)):
        kernel = smi2mol.make_text_kernel(3, CONFIG, base).fit(task.train.texts)
        for text, graph in zip(task.test.texts, predicted, strict=True):
            similarity = kernel([text], task.train.texts)[0]
            ties = np.flatnonzero(np.isclose(similarity, similarity.max(), rtol=1e-12))
            assert graph in [task.train.graphs[i] for i in ties]
    assert nearest_graphs(task.train, task.train.texts, kernel) == task.train.graphs


def test_the_nearest_smiles_takes_the_length_with_the_smallest_validation_error(chains):
    config = {**smi2mol.NEAREST_CONFIG, **smi2mol.NEAREST_QUICK, "max_length": [1, 2, 4]}
    task = Task.load(config, 0, None)
    errors = {}
    for length in config["max_length"]:
        predicted = nearest_graphs(task.train, task.validation.texts, smi2mol.make_text_kernel(length, config))
        errors[length] = float(graph_edit_distance(task.validation.graphs, predicted))
    row = smi2mol.run_nearest(Context(config, 0, None, lambda text: None)).rows[0]
    best = smi2mol.make_text_kernel(min(errors, key=errors.get), config)
    assert row.method == smi2mol.NEAREST and row.parameters == {"input_kernel": repr(best)}
    predicted = nearest_graphs(task.train, task.test.texts, best)
    assert row.value == float(graph_edit_distance(task.test.graphs, predicted, edge_labels=False))


def test_the_smallest_validation_error_of_each_parameter_is_chosen(chains, monkeypatch):
    errors = {"max_length": {3: 1.0, 4: 0.0}, "gamma": {0.5: 0.0, 1.0: 2.0}, "depth": {1: 3.0, 2: 0.5, 3: 0.6}}
    grid = {**{name: list(values) for name, values in errors.items()}, "alpha": [1e-5], "normalize_depths": [True]}
    seen = []

    def fit(method, setting, *_):
        seen.append(setting)
        return setting

    def decode(setting, *_):
        total = sum(errors[name][getattr(setting, name)] for name in errors)
        return {", local search": Bunch(distances={True: total})}

    monkeypatch.setattr(smi2mol, "fit", fit)
    monkeypatch.setattr(smi2mol, "decode", decode)
    setting, seconds = smi2mol.choose(Task.load(CONFIG, 0, None), {**CONFIG, "grid": grid}, make_context())
    assert (setting.max_length, setting.gamma, setting.depth) == (4, 0.5, 2)
    assert len(seen) == len(set(seen)) and seconds > 0


@pytest.mark.parametrize("n_positions", [1, 3, 8])
def test_characters_at_positions_are_those_of_a_double_loop(n_positions):
    texts = ["^CC$", "^C1=O$", "C", "x"]
    rows = one_hot(texts, n_positions).toarray().reshape(len(texts), 2, n_positions, len(CHARACTERS))
    for i, text in enumerate(texts):
        for place, (k, character) in itertools.product(range(n_positions), enumerate(CHARACTERS)):
            assert rows[i, 0, place, k] == (text[place : place + 1] == character)
            assert rows[i, 1, place, k] == (text[::-1][place : place + 1] == character)
