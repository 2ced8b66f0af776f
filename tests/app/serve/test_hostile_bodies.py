"""Requests whose cost is not in proportion to their size: bounded before the work starts, and never status 500."""

import asyncio
import threading

import httpx
import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs the extra psilearn[app]")

from psilearn import IOKR
from psilearn.app.serve import Limits, create_app, json_values
from psilearn.kernels import Gaussian
from tests.app.serve.clients import BASE, call, get, label_set_problem, post, rows_problem, serve, text_problem

SIZE = 4 * 2**20


@pytest.fixture(scope="module")
def app():
    return serve(rows_problem()[2])


def fill(item):
    """Return a body of the largest size that repeats one input."""
    head, tail = b'{"inputs":[', b"]}"
    return head + b",".join([item] * ((SIZE - len(head) - len(tail)) // (len(item) + 1))) + tail


@pytest.mark.parametrize("item", [b"{}", b"[]", b'"x"', b"null", b"true", b"1", b"[[1,2,3]]", b'{"a":"b"}', b"[1,2]"])
def test_the_largest_body_of_wrong_inputs_is_rejected_before_it_is_read(app, item):
    headers = {"Content-Type": "application/json"}
    answer = call(app, ("POST", "/v1/predict", {"content": fill(item), "headers": headers}))[0]
    assert answer.status_code == 413 and len(answer.content) < 1000


def test_the_checks_of_a_body_build_no_errors_per_input(app):
    body = b'{"inputs":[' + b",".join([b'"x"'] * 900_000) + b"]}"
    answer = call(app, ("POST", "/v1/predict", {"content": body, "headers": {"Content-Type": "application/json"}}))[0]
    assert answer.status_code == 413 and "inputs: 900,000 is more than the limit of 1,000" in answer.text


@pytest.mark.parametrize("item", [b"1e308", b"0.25", b"9" * 4000])
def test_other_threads_take_their_turn_while_a_large_body_is_parsed(item, monkeypatch):
    values, names = [], set()

    def parse(text):
        names.add(threading.current_thread().name)
        values.append(text)
        return float(text)

    monkeypatch.setattr(json_values, "float", parse, raising=False)
    monkeypatch.setattr(json_values, "int", parse, raising=False)
    app = serve(rows_problem()[2])
    content, headers = fill(item), {"Content-Type": "application/json"}
    assert call(app, ("POST", "/v1/predict", {"content": content, "headers": headers}))[0].status_code == 413
    assert len(values) == content.count(b",") + 1  # one call, after which threads may be switched, per number
    assert names and all(name.startswith("psilearn-parse") for name in names)


HUGE = int("9" * 310)


@pytest.mark.parametrize(
    "value",
    [
        *({}, [HUGE] * 3, HUGE, [[]], None, True, [None] * 3, [-HUGE, 0, 0], {"x": {"y": []}}, {"node_labels": 3}),
        *({"indices": [1]}, {"indices": [HUGE], "values": [1]}, {"indices": [0], "values": [HUGE]}),
        *({"indices": 3, "values": 3}, {"indices": [True], "values": [1]}, {"indices": [0, 0], "values": [1, 1]}),
        {"node_labels": [HUGE]},
    ],
    ids=lambda value: str(value)[:30],
)
def test_values_of_other_types_and_sizes_are_not_accepted(value, app):
    content = {"inputs": [value]}
    listed = {"inputs": [[1, 2, 3]], "candidates": [value]}
    for answer in (post(app, "/v1/predict", content), post(app, "/v1/topk", listed)):
        assert answer.status_code == 422, answer.text
    for problem in (label_set_problem, text_problem):
        answer = post(serve(problem()[-1]), "/v1/predict", content)
        assert answer.status_code == 422, answer.text


def test_indices_of_a_kernel_matrix_may_have_any_number_of_digits():
    from psilearn.kernels import Precomputed

    rows = np.arange(6)
    app = serve(IOKR(Precomputed(np.eye(6)), Gaussian(1.0)).fit(rows, rows[:, None] / 6))
    for value in (HUGE, -HUGE, 1e308, 1.5, "1", [1], {}):
        assert post(app, "/v1/predict", {"inputs": [value]}).status_code == 422


def test_work_is_bounded_before_it_starts():
    X, Y, model = rows_problem()
    app = serve(model, limits=Limits(work=2000))
    assert post(app, "/v1/predict", {"inputs": X[:10].tolist()}).status_code == 200  # 10 * (40 + 40) comparisons
    answer = post(app, "/v1/predict", {"inputs": X[:60].tolist()})
    assert answer.status_code == 413 and "comparisons" in answer.text
    listed = {"inputs": X[:10].tolist(), "candidates": Y.tolist()}
    assert post(app, "/v1/predict", listed).status_code == 413  # also 60 * 40 of candidates with known outputs


def test_answers_are_bounded():
    X, _, model = rows_problem()
    app = serve(model, limits=Limits(answer_bytes=2000))
    assert post(app, "/v1/topk", {"inputs": X[:2].tolist(), "k": 5}).status_code == 200
    for path, options in (("topk", {"k": 40}), ("sets", {"coverage": 1.0}), ("embed", {})):
        answer = post(app, f"/v1/{path}", {"inputs": np.tile(X, (5, 1)).tolist(), **options})
        assert answer.status_code == 413 and "bytes of the answer" in answer.text


def test_a_request_that_was_given_up_ends_between_two_blocks(monkeypatch):
    X, _, model = rows_problem()
    monkeypatch.setattr("psilearn.app.serve.prediction_routes.BLOCK_WORK", 80)  # one input per block
    computed, may_go_on = [], threading.Event()
    predict = type(model).predict

    def slow_predict(self, rows, candidates=None):
        computed.append(len(rows))
        may_go_on.wait(5)
        return predict(self, rows, candidates)

    monkeypatch.setattr(type(model), "predict", slow_predict)
    app = serve(model, limits=Limits(answer_seconds=1))
    given_up = post(app, "/v1/predict", {"inputs": X[:50].tolist()})
    may_go_on.set()
    assert given_up.status_code == 503 and computed == [1]
    answer = post(app, "/v1/predict", {"inputs": X[:3].tolist()})
    assert np.array_equal(answer.json()["outputs"], predict(model, X[:3])) and computed == [1] * 4


def test_blocks_of_large_requests_let_others_take_their_turn(monkeypatch):
    X, _, model = rows_problem()
    monkeypatch.setattr("psilearn.app.serve.prediction_routes.BLOCK_WORK", 80)
    app = serve(model)
    finished = []

    async def run():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:

            async def send(name, rows, k):
                answer = await client.post("/v1/topk", json={"inputs": rows.tolist(), "k": k})
                assert np.array_equal(
                    answer.json()["results"][0]["outputs"], model.predict_topk(rows[:1], k).outputs[0]
                )
                finished.append(name)

            await asyncio.gather(send("large", X, 3), send("small", X[:1], 2))

    asyncio.run(run())
    assert finished == ["small", "large"]


def test_large_heads_are_rejected(app):
    assert get(app, "/healthz", headers={"X": "a" * 10_000}).status_code == 200
    assert get(app, "/healthz", headers={"X": "a" * 64_000}).status_code == 431
    assert get(app, f"/healthz?{'a' * 20_000}").status_code == 431


@pytest.mark.parametrize("token", [5, b"0123456789abcdef", "", "short", "0123456789abcde\n", "ü" * 20, "a" * 1001])
def test_other_tokens_are_rejected_when_the_service_is_made(token):
    with pytest.raises(ValueError, match="A token must be text of 16 to 1000 printable ASCII characters"):
        create_app([], token=token)


def test_numbers_that_json_cannot_represent_are_rejected(app):
    for text in ("NaN", "Infinity", "-Infinity", "1e999"):
        body = f'{{"inputs":[[{text},1,1]]}}'.encode()
        headers = {"Content-Type": "application/json"}
        assert call(app, ("POST", "/v1/predict", {"content": body, "headers": headers}))[0].status_code == 422
