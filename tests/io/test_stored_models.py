"""Models that were stored by each version of the model format: they predict as they did, or are rejected by version."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from psilearn import load_model
from psilearn.io.saved_models import FORMAT

STORED_MODELS = Path(__file__).parent / "stored_models"
MODELS = sorted(path.with_suffix("") for path in STORED_MODELS.glob("*/*.npz"))


def test_models_of_the_current_format_are_stored():
    assert {path.name for path in MODELS if path.parent.name == str(FORMAT.version)} == {
        "label_sets",
        "landmarks",
        "rankings",
    }, "The version of the model format changed: run python tools/store_models.py once."


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_stored_model_predicts_as_it_did(path):
    if path.parent.name != str(FORMAT.version):
        with pytest.raises(ValueError, match=f"version {path.parent.name} of the format"):
            load_model(path.with_suffix(".psi"))
        return
    stored = np.load(path.with_suffix(".npz"))
    X = sparse.csr_matrix(stored["X"]) if stored["is_sparse"] else stored["X"]
    model = load_model(path.with_suffix(".psi"))
    np.testing.assert_array_equal(model.predict(X), stored["predictions"])
    np.testing.assert_allclose(model.embed(X), stored["embedded"], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.predict_topk(X, k=1).distances, stored["distances"], rtol=1e-6, atol=1e-9)
