"""Host, origin, token, sizes, times and headers."""

import asyncio
import json
import logging

import pytest

from psilearn.app.serve import Limits, create_app
from psilearn.app.serve.request_guard import Access, RequestGuard, is_loopback
from psilearn.app.serve.request_log import JSONFormatter
from tests.app.serve.clients import call, get, post, rows_problem, serve

TOKEN = "0123456789abcdef"


@pytest.fixture(scope="module")
def model():
    return rows_problem()[2]


@pytest.mark.parametrize(
    "base", ["http://evil.example", "http://127.0.0.1.evil.example:8000", "http://127.0.0.1:x@evil.example"]
)
def test_other_hosts_are_rejected(model, base):
    assert call(serve(model), ("GET", "/v1/models", {}), base=base)[0].status_code == 421


@pytest.mark.parametrize(
    "base", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:8000", "http://lab.example"]
)
def test_own_names_are_accepted(model, base):
    app = serve(model, allowed_hosts=["lab.example"])
    assert call(app, ("GET", "/v1/models", {}), base=base)[0].status_code == 200


def test_other_origins_are_rejected_and_no_cors_header_is_sent(model):
    app = serve(model)
    assert get(app, "/v1/models", headers={"Origin": "http://evil.example"}).status_code == 403
    assert get(app, "/v1/models", headers={"Origin": "null"}).status_code == 403
    answer = get(app, "/v1/models", headers={"Origin": "http://127.0.0.1:8000"})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert call(app, ("OPTIONS", "/v1/predict", {}))[0].status_code == 405


def test_a_token_is_needed_elsewhere(model):
    with pytest.raises(ValueError, match="a token is required"):
        serve(model, host="0.0.0.0")
    app = serve(model, host="0.0.0.0", token=TOKEN)
    for headers in ({}, {"Authorization": TOKEN}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": "Bearer ü"}):
        answer = get(app, "/v1/models", headers={name: value.encode() for name, value in headers.items()})
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
        assert (
            get(app, "/metrics", headers={name: value.encode() for name, value in headers.items()}).status_code == 401
        )
    assert get(app, "/v1/models", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert get(app, "/healthz").json() == {"status": "ok"} and get(app, "/").status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_addresses_need_no_token(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["127.0.0.1.example.org", "127.example.org", "0.0.0.0", "::", "", "192.0.2.1"])
def test_other_addresses_and_names_need_a_token(host):
    assert not is_loopback(host)


def test_every_answer_has_security_headers(model):
    app = serve(model)
    for answer in (
        get(app, "/"),
        get(app, "/nothing"),
        post(app, "/v1/predict", {}),
        get(app, "/", headers={"Host": "x"}),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_large_bodies_are_rejected_with_and_without_a_stated_size(model):
    app = serve(model, limits=Limits(body_bytes=1000))

    async def chunks():
        for _ in range(20):
            yield b" " * 100

    answers = call(
        app, ("POST", "/v1/predict", {"content": b" " * 1001}), ("POST", "/v1/predict", {"content": chunks()})
    )
    assert [answer.status_code for answer in answers] == [413, 413]


def test_bodies_that_are_received_together_are_limited(model):
    app = serve(model, limits=Limits(buffered_bytes=1000))

    async def slow():
        yield b" " * 900
        await asyncio.sleep(0.2)
        yield b"{}"

    answers = call(app, ("POST", "/v1/predict", {"content": slow()}), ("POST", "/v1/predict", {"content": slow()}))
    assert sorted(answer.status_code for answer in answers) == [422, 429]
    assert post(app, "/v1/predict", {"inputs": [[1, 2, 3]]}).status_code == 200


def test_slow_bodies_time_out():
    sent = []

    async def never():
        await asyncio.sleep(60)

    async def keep(message):
        sent.append(message)

    guard = RequestGuard(None, Access.of("127.0.0.1", None), Limits(body_seconds=1))
    scope = {"type": "http", "path": "/v1/predict", "headers": [(b"host", b"localhost")]}
    asyncio.run(guard(scope, never, keep))
    assert sent[0]["status"] == 408


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 40_000,
        b"\xff\xfe",
        b'{"inputs": [[NaN, 1, 2]]}',
        b'{"inputs": [[' + b"9" * 10_000 + b"]]}",
        b"null",
    ],
)
def test_bad_json_is_rejected_without_repeating_it(model, content):
    answer = call(
        serve(model), ("POST", "/v1/predict", {"content": content, "headers": {"Content-Type": "application/json"}})
    )[0]
    assert answer.status_code in (400, 422)
    assert len(answer.content) < 2000


@pytest.mark.parametrize(
    "path",
    [
        "/static/../http_app.py",
        "/static/%2e%2e/http_app.py",
        "/static/..%2fhttp_app.py",
        "/static//etc/passwd",
        "/static/x",
        "/%00",
    ],
)
def test_paths_reach_no_file(model, path):
    assert get(serve(model), path).status_code == 404


def test_logs_are_json_without_contents(model, caplog):
    secret = "very-secret-value"
    with caplog.at_level(logging.INFO, "psilearn.app.serve"):
        post(serve(model), f"/v1/predict?q={secret}", {"inputs": [secret]}, headers={"X-Header": secret})
        get(serve(model), f"/{secret}")
    lines = [JSONFormatter().format(record) for record in caplog.records if record.name == "psilearn.app.serve"]
    assert len(lines) == 2 and secret not in "".join(lines)
    assert json.loads(lines[0])["path"] == "/v1/predict" and json.loads(lines[1])["path"] == "other"


def test_an_unexpected_error_is_answered_and_logged_without_its_message(model, caplog):
    app = serve(model)
    secret = "very-secret-value"

    class Broken:
        regression_ = model.regression_
        candidates_ = model.candidates_
        n_components_ = model.n_components_

        def predict(self, *_):
            raise RuntimeError(secret)

    app = serve(Broken())
    with caplog.at_level(logging.INFO, "psilearn.app.serve"):
        answer = post(app, "/v1/predict", {"inputs": [[1, 2, 3]]})
    assert answer.status_code == 500 and secret not in answer.text
    lines = [JSONFormatter().format(record) for record in caplog.records if record.name == "psilearn.app.serve"]
    assert '"error": "RuntimeError"' in lines[0] and secret not in "".join(lines)


def test_limits_are_validated():
    with pytest.raises(ValueError, match="rows"):
        Limits(rows=0)
    assert create_app([], limits=Limits(rows=3)).title == "psilearn"


@pytest.mark.parametrize("token", [5, b"secret", ["secret"]])
def test_a_token_is_a_text(token):
    with pytest.raises(ValueError, match="A token must be text"):
        create_app([], token=token)
