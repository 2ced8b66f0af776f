"""Answers of the service are those of the library."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from psilearn import IOKR, save_model
from psilearn.app.cli import app as command_line
from psilearn.app.serve import Limits, ServedModel, create_app
from psilearn.app.tables import TableModel
from psilearn.kernels import Gaussian, Graph, Precomputed, Substrings, WeisfeilerLehman
from tests.app.serve.clients import (
    call,
    get,
    graph_problem,
    label_set_problem,
    post,
    ranking_problem,
    rows_problem,
    serve,
    text_problem,
)


@pytest.fixture(scope="module")
def rows():
    return rows_problem()


def test_predictions_of_rows_are_those_of_the_library(rows):
    X, _, model = rows
    answer = post(serve(model), "/v1/predict", {"inputs": X[:7].tolist()})
    assert answer.status_code == 200
    assert np.array_equal(answer.json()["outputs"], model.predict(X[:7]))


def test_nearest_candidates_are_those_of_the_library(rows):
    X, Y, model = rows
    results = post(serve(model), "/v1/topk", {"inputs": X[:5].tolist(), "k": 3}).json()["results"]
    top = model.predict_topk(X[:5], 3)
    assert np.array_equal([result["distances"] for result in results], top.distances)
    assert np.array_equal([result["outputs"] for result in results], np.array(top.outputs))
    listed = {"inputs": X[:5].tolist(), "k": 2, "candidates": Y[50:].tolist()}
    results = post(serve(model), "/v1/topk", listed).json()["results"]
    assert np.array_equal([result["distances"] for result in results], model.predict_topk(X[:5], 2, Y[50:]).distances)


def test_sets_and_embeddings_are_those_of_the_library(rows):
    X, Y, model = rows
    request = {"inputs": X[:4].tolist(), "coverage": 0.8, "candidates": Y.tolist(), "limit": 2}
    answer = post(serve(model), "/v1/sets", request).json()
    sets = model.predict_set(X[:4], 0.8, Y)
    assert [result["size"] for result in answer["results"]] == sets.sizes.tolist()
    assert [result["outputs"] for result in answer["results"]] == [members[:2].tolist() for members in sets.outputs]
    embeddings = post(serve(model), "/v1/embed", {"inputs": X[:4].tolist()}).json()["embeddings"]
    assert np.array_equal(embeddings, model.embed(X[:4]))


def test_label_sets_from_sparse_rows():
    X, _, model = label_set_problem()
    app = serve(model)
    for candidates in ("known", "near", "all"):
        sparse_rows = [{"indices": row.indices.tolist(), "values": row.data.tolist()} for row in X[:4]]
        request = {"inputs": [*sparse_rows, X[4].toarray()[0].tolist()], "candidates": candidates}
        outputs = post(app, "/v1/predict", request).json()["outputs"]
        assert np.array_equal(outputs, model.predict(X[:5], candidates))


def test_rankings_texts_and_graphs():
    X, _, model = ranking_problem()
    assert np.array_equal(
        post(serve(model), "/v1/predict", {"inputs": X[:3].tolist()}).json()["outputs"], model.predict(X[:3])
    )
    words, model = text_problem()
    assert post(serve(model), "/v1/predict", {"inputs": words}).json()["outputs"] == list(model.predict(words))
    graphs, model = graph_problem()
    as_lists = [[list(edge) for edge in graph] for graph in graphs]
    assert post(serve(model), "/v1/predict", {"inputs": as_lists}).json()["outputs"] == as_lists


def test_saved_models_of_strings_tokens_and_labeled_graphs(tmp_path):
    words = ["tea", "cat", "dog", "good", "ace", "cage", "toad", "goat"]
    tokens = [[3, 1, 4], [1, 5, 9, 2], [6, 5, 3, 5], [8, 9, 7, 9]]
    graphs = [Graph("CO", [(0, 1, 2)]), Graph("CCO", [(0, 1), (1, 2)]), Graph([("C", 1), "N"], [(0, 1)])]
    for X, kernel in [(words, Substrings(2)), (tokens, Substrings(2)), (graphs, WeisfeilerLehman(2))]:
        save_model(IOKR(kernel, kernel, alpha=1e-6).fit(X, X), tmp_path / "model", overwrite=True)
        app = create_app([ServedModel.load(tmp_path / "model")])
        inputs = X if not isinstance(X[0], Graph) else [graph_json(graph) for graph in X]
        assert post(app, "/v1/predict", {"inputs": inputs}).json()["outputs"] == inputs
        assert (
            post(app, "/v1/predict", {"inputs": inputs[:2], "candidates": inputs[2:3]}).json()["outputs"]
            == [inputs[2]] * 2
        )
    for value, message in [
        ("CO", "must be an object"),
        ({"node_labels": []}, "inputs[0]: A graph must have at least one node"),
        ({"node_labels": ["C"], "edges": [[0, 1]]}, "inputs[0]"),
        ({"node_labels": [{}]}, "inputs[0]"),
    ]:
        answer = post(app, "/v1/predict", {"inputs": [value]})
        assert answer.status_code == 422 and message in answer.text, answer.text


def graph_json(graph):
    labels = [list(label) if isinstance(label, tuple) else label for label in graph.node_labels]
    return {"node_labels": labels, "edges": [list(edge) for edge in graph.edges]}


def test_models_are_chosen_by_name(rows):
    _, _, model = rows
    _, other = text_problem()
    app = create_app([ServedModel("rows", model, {"image_width": 3}), ServedModel("words", other)])
    described = get(app, "/v1/models").json()["models"]
    assert [(item["name"], item["input_kind"], item["input_width"]) for item in described] == [
        ("rows", "rows", 3),
        ("words", "texts", None),
    ]
    assert [item["image_width"] for item in described] == [3, None] and described[0]["calibrated"]
    assert post(app, "/v1/predict", {"model": "words", "inputs": ["tea"]}).json() == {
        "model": "words",
        "outputs": ["tea"],
    }
    assert post(app, "/v1/predict", {"model": "none", "inputs": ["tea"]}).status_code == 404
    with pytest.raises(ValueError, match="different names"):
        create_app([ServedModel("a", model), ServedModel("a", other)])


@pytest.mark.parametrize("block_rows", [1, 256])
def test_concurrent_requests_get_the_answers_of_single_ones(rows, block_rows):
    X, _, model = rows
    app = serve(model, limits=Limits(block_rows=block_rows))
    requests = [("POST", "/v1/topk", {"json": {"inputs": [row], "k": 4}}) for row in X.tolist()]
    wrong = ("POST", "/v1/topk", {"json": {"inputs": [[1.0]], "k": 4}})
    answers = call(app, *requests, wrong)
    assert answers.pop().status_code == 422
    for row, answer in zip(X, answers, strict=True):
        alone = model.predict_topk(row[None], 4)
        result = answer.json()["results"][0]
        assert np.array_equal(result["outputs"], alone.outputs[0])
        np.testing.assert_allclose(result["distances"], alone.distances[0], rtol=1e-9, atol=1e-12)
    text = get(app, "/metrics").text
    blocks = float(re.search(r"^psilearn_predicted_blocks_total (.*)", text, re.MULTILINE)[1])
    assert blocks < len(X) if block_rows > 1 else blocks == len(X) + 1


@pytest.mark.parametrize(
    ("path", "content", "status", "message"),
    [
        ("predict", {"inputs": [[1, 2]]}, 422, "inputs[0] has 2 numbers; the model takes 3"),
        ("predict", {"inputs": ["text"]}, 422, "inputs[0] must be a list of 3 numbers; got text"),
        ("predict", {"inputs": [[1, 2, None]]}, 422, "inputs[0] must be a list of 3 numbers"),
        ("predict", {"inputs": [[1, 2, True]]}, 422, "inputs[0] must be a list of 3 numbers"),
        ("predict", {"inputs": []}, 422, "at least 1 item"),
        ("predict", {"inputs": [[1, 2, 3]], "other": 1}, 422, "Extra inputs are not permitted"),
        ("predict", {"inputs": [[1, 2, 3]], "candidates": "some"}, 422, "'known', 'near' or 'all'"),
        ("predict", {"inputs": [[1, 2, 3]], "candidates": [[1]]}, 422, "candidates[0] has 1 numbers"),
        ("predict", {"inputs": [[1, 2, 3]] * 11}, 413, "limit of 10"),
        ("topk", {"inputs": [[1, 2, 3]], "k": 0}, 422, "greater than or equal to 1"),
        ("topk", {"inputs": [[1, 2, 3]], "k": 10**9}, 413, "k: 1,000,000,000 is more than the limit"),
        ("topk", {"inputs": [[1, 2, 3]], "k": "3"}, 422, "valid integer"),
        ("sets", {"inputs": [[1, 2, 3]], "coverage": 2.0}, 422, "less than or equal to 1"),
    ],
)
def test_invalid_requests_are_explained(rows, path, content, status, message):
    answer = post(serve(rows[2], limits=Limits(rows=10)), f"/v1/{path}", content)
    assert answer.status_code == status and message in answer.text.replace('\\"', '"')


def test_invalid_texts_numbers_and_objects_are_explained():
    words, model = text_problem()
    app = serve(model, limits=Limits(text=10))
    assert post(app, "/v1/predict", {"inputs": ["a" * 10]}).status_code == 200
    assert post(app, "/v1/predict", {"inputs": ["a" * 11]}).status_code == 413
    assert post(app, "/v1/predict", {"inputs": words, "candidates": ["a" * 11]}).status_code == 413
    graphs = [Graph("CO", [(0, 1)]), Graph("CCO", [(0, 1), (1, 2)])]
    app = serve(IOKR(WeisfeilerLehman(), WeisfeilerLehman()).fit(graphs, graphs), limits=Limits(nodes=3))
    small, large = {"node_labels": ["C"] * 3}, {"node_labels": ["C"] * 4}
    assert post(app, "/v1/predict", {"inputs": [small]}).status_code == 200
    assert post(app, "/v1/predict", {"inputs": [large]}).status_code == 413
    assert post(app, "/v1/predict", {"inputs": [small], "candidates": [large]}).status_code == 413
    app = serve(graph_problem()[1])
    nested = 1
    for _ in range(200):
        nested = [nested]
    for value, message in [(nested, "lists inside each other"), ("text", "must be a list; got text")]:
        answer = post(app, "/v1/predict", {"inputs": [value]})
        assert answer.status_code == 422 and message in answer.text
    rows = np.arange(6)
    app = serve(IOKR(Precomputed(np.eye(6)), Gaussian(1.0)).fit(rows, rows[:, None] / 6))
    assert post(app, "/v1/predict", {"inputs": [2]}).json()["outputs"] == [[2 / 6]]
    for value in (1.5, 6, -1, 2**70):
        assert post(app, "/v1/predict", {"inputs": [value]}).status_code == 422


def test_sets_need_calibration():
    X, _, model = ranking_problem()
    answer = post(serve(model), "/v1/sets", {"inputs": X[:1].tolist()})
    assert answer.status_code == 422 and "not calibrated" in answer.text


def test_the_schema_is_typed(rows):
    schema = get(serve(rows[2]), "/openapi.json").json()
    for path in ("predict", "topk", "sets", "embed"):
        operation = schema["paths"][f"/v1/{path}"]["post"]
        body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        answer = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        assert schema["components"]["schemas"][body.rsplit("/")[-1]]["additionalProperties"] is False
        assert "model" in schema["components"]["schemas"][answer.rsplit("/")[-1]]["properties"]


def test_rows_of_table_models_are_objects_by_column(tmp_path):
    lines = ["size,color,tags"] + [f"{i % 7},{'red' if i % 2 else 'blue'},{'a;b' if i % 3 else 'c'}" for i in range(30)]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    arguments = ["fit", str(tmp_path / "train.csv"), "--outputs", "tags", "-o", str(tmp_path / "model")]
    result = CliRunner().invoke(command_line, arguments)
    assert result.exit_code == 0, result.output
    table = TableModel.load(tmp_path / "model")
    expected = table.predict(tmp_path / "train.csv")["tags"]
    app = create_app([ServedModel.load(tmp_path / "model")])
    assert get(app, "/v1/models").json()["models"][0]["columns"] == table.inputs.names
    rows = [{"size": i % 7, "color": "red" if i % 2 else "blue"} for i in range(30)]
    outputs = post(app, "/v1/predict", {"inputs": rows}).json()["outputs"]
    assert [output["tags"] for output in outputs] == expected
    top = post(app, "/v1/topk", {"inputs": rows[:2], "k": 2}).json()["results"]
    assert [result["outputs"][0]["tags"] for result in top] == expected[:2]
    for tags, chosen in (["c", "a;b"], expected[:5]), (["c"], ["c"] * 5):
        listed = {"inputs": rows[:5], "candidates": [{"tags": value} for value in tags]}
        outputs = post(app, "/v1/predict", listed).json()["outputs"]
        assert [output["tags"] for output in outputs] == chosen
    answer = post(app, "/v1/predict", {"inputs": rows[:1], "candidates": ["c"]})
    assert answer.status_code == 422 and "candidates[0] must be an object" in answer.text
    for row, message in [
        ({"size": 1}, "lacks the column 'color'"),
        ({"size": "x", "color": "red"}, "inputs[0].size must be a number"),
    ]:
        answer = post(app, "/v1/predict", {"inputs": [row]})
        assert answer.status_code == 422 and message in answer.text
