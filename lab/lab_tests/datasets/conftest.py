import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return the path of a data home that does not exist yet."""
    monkeypatch.setenv("PSILEARN_DATA", str(tmp_path / "home"))
    return tmp_path / "home"
