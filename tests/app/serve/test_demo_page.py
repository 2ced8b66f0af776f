"""``psilearn demo --serve``: the models that the page uses."""

import numpy as np
from typer.testing import CliRunner

from psilearn.app import demo
from psilearn.app.cli import app
from psilearn.app.serve import server_process
from tests.app.serve.clients import get, post


def test_the_demo_serves_three_models_that_complete_digits(monkeypatch):
    monkeypatch.setattr(demo, "N_UNLABELED", 100)
    monkeypatch.setattr(demo, "SIZES", [8])
    served = []
    monkeypatch.setattr(server_process, "run_service", lambda make_app, listener, limits: served.append(make_app()))
    result = CliRunner().invoke(app, ["demo", "--serve", "--port", "0"])
    assert result.exit_code == 0 and "Open http://127.0.0.1:" in result.output, result.output
    models = get(served[0], "/v1/models").json()["models"]
    assert [(model["name"], model["image_width"]) for model in models] == [("IOKR", 8), ("KDE", 8), ("OEL", 8)]
    digits = demo.load_halves(0)
    answer = post(served[0], "/v1/predict", {"model": "IOKR", "inputs": digits.X_test[:3].tolist()}).json()
    assert np.shape(answer["outputs"]) == (3, 32) and demo.WIDTH == 8
