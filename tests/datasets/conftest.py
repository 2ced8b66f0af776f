import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return the place of a data home that is not yet there."""
    monkeypatch.setenv("PSILEARN_DATA", str(tmp_path / "home"))
    return tmp_path / "home"
