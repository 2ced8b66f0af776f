"""Models with graphs as inputs and outputs: the same as on rows of features, and saved without pickle."""

import numpy as np
import pytest

from psilearn import IOKR, OEL, load_model, save_model
from psilearn.io.encoding import Decoder, Encoder
from psilearn.kernels import EdgeHistogram, Gaussian, Graph, Linear, WeisfeilerLehman

CHAINS = [Graph("C" * n + last, [(i, i + 1, 1) for i in range(n)]) for n in range(1, 9) for last in "NO"]
X = np.array([[n, last == "N"] for n in range(1, 9) for last in "NO"], float)


@pytest.mark.parametrize("base", [None, Gaussian(0.1), Gaussian("median"), Linear().normalized()])
def test_a_model_on_graphs_is_the_model_on_rows(base):
    kernel = WeisfeilerLehman(2, base=base)
    rows = kernel.features(CHAINS)
    on_graphs = OEL(Gaussian(0.5), kernel, alpha=1e-6, n_components=5).fit(X, CHAINS)
    on_rows = OEL(Gaussian(0.5), base or Linear(), alpha=1e-6, n_components=5).fit(X, rows)
    expected, found = (model.predict_topk(X + 0.1, k=4) for model in (on_rows, on_graphs))
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.distances, expected.distances, atol=1e-10)
    assert on_graphs.predict(X[:3])[2] in CHAINS


def test_graphs_can_be_inputs_outputs_and_candidates_with_landmarks():
    kernel = WeisfeilerLehman(1, base=Gaussian(0.5)) + EdgeHistogram(normalize=False)
    model = IOKR(kernel, kernel, alpha=1e-8, input_landmarks=16, output_landmarks=16, dtype="float32")
    model.fit(CHAINS, CHAINS)
    assert model.predict(CHAINS[:4]) == CHAINS[:4]
    assert model.predict(CHAINS[:2], candidates=CHAINS[5:8])[0] in CHAINS[5:8]
    assert model.predict(CHAINS[:2], candidates=[CHAINS[:1], CHAINS[3:5]])[0] == CHAINS[0]


def test_models_of_graphs_are_saved_without_pickle(tmp_path):
    labels = [("C", 1), None, 2.5, "ring", True, 1]
    graphs = [Graph(labels[: n + 1], [(i, i + 1, labels[i]) for i in range(n)]) for n in range(6)]
    kernel = WeisfeilerLehman(2, normalize_depths=True, base=Gaussian("median"))
    model = IOKR(kernel, WeisfeilerLehman(1), alpha=1e-6).fit(graphs, graphs)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.predict(graphs) == model.predict(graphs) == graphs
    kept = loaded.predict(graphs)[-1]
    assert [type(label) for label in kept.node_labels] == [type(label) for label in labels]
    np.testing.assert_array_equal(loaded.embed(graphs), model.embed(graphs))


def test_damaged_graphs_are_rejected():
    encoder = Encoder()
    data = encoder.encode(CHAINS, "outputs")
    assert Decoder(encoder.arrays, 10_000).decode(data) == CHAINS
    for name, change in (("n_nodes", 1), ("n_edges", 1), ("nodes", -100), ("edges", 50)):
        arrays = {file: array + change if file == data[name] else array for file, array in encoder.arrays.items()}
        with pytest.raises((LookupError, ValueError)):
            Decoder(arrays, 10_000).decode(data)
    n = encoder.arrays[data["n_nodes"]].copy()
    n[:3] += [100, -200, 100]  # graphs that share nodes could be quadratically larger than the file
    with pytest.raises(ValueError, match="negative"):
        Decoder({**encoder.arrays, data["n_nodes"]: n}, 10_000).decode(data)


@pytest.mark.parametrize(("objects", "message"), [(["CCO"], r"A\[0\] must be a Graph"), ([], "A is empty")])
def test_bad_outputs_raise_an_error(objects, message):
    with pytest.raises((TypeError, ValueError), match=message):
        WeisfeilerLehman()(objects)
