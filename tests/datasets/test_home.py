import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from psilearn.datasets import data_home, load_bibtex, load_usps
from psilearn.datasets.home import RemoteFile

CONTENT = b"a small file\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PSILEARN_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "public"
    folder.mkdir()
    (folder / "small.txt").write_bytes(CONTENT)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def test_the_variable_names_the_home(home, monkeypatch):
    assert data_home() == home
    monkeypatch.delenv("PSILEARN_DATA")
    assert data_home().name == "psilearn_data"


def test_a_missing_file_is_downloaded_once_and_checked(home, server, tmp_path):
    file = RemoteFile("some/small.txt", f"{server}/small.txt", SHA256)
    assert file.fetch().read_bytes() == CONTENT
    (tmp_path / "public" / "small.txt").unlink()
    assert file.fetch() == home / "some" / "small.txt"


def test_a_wrong_download_leaves_nothing_behind(home, server):
    with pytest.raises(FileNotFoundError, match="could not be downloaded"):
        RemoteFile("some/small.txt", f"{server}/small.txt", "0" * 64).fetch()
    assert not any(path.is_file() for path in home.rglob("*"))


def test_an_unreachable_source_says_what_to_put_where(home, server):
    with pytest.raises(FileNotFoundError, match=r"Get http.*nowhere.txt and save it as .*some.small.txt"):
        RemoteFile("some/small.txt", f"{server}/nowhere.txt", SHA256).fetch()


def test_a_spoiled_file_is_refused(home):
    (home / "some").mkdir(parents=True)
    (home / "some" / "small.txt").write_bytes(b"<html>not found</html>")
    with pytest.raises(ValueError, match="is not the expected file"):
        RemoteFile("some/small.txt", "http://127.0.0.1:9/", SHA256).fetch()


@pytest.mark.data("usps/usps.h5")
def test_usps():
    usps = load_usps()
    assert usps.X.shape == usps.Y.shape == (9298, 128)
    assert (len(usps.train), len(usps.test)) == (7291, 2007)
    assert usps.X.min() >= 0 and usps.X.max() <= 1


@pytest.mark.data("mulan/bibtex/bibtex-train.arff", "mulan/bibtex/bibtex-test.arff", "mulan/bibtex/bibtex.xml")
def test_bibtex():
    bibtex = load_bibtex()
    assert bibtex.X.shape == (7395, 1836) and bibtex.Y.shape == (7395, 159)
    assert (len(bibtex.train), len(bibtex.test)) == (4880, 2515)
    assert set(bibtex.Y.data) == {1} and len(bibtex.label_names) == 159 and len(bibtex.feature_names) == 1836
    assert bibtex.Y.sum() / 7395 == pytest.approx(2.40, abs=0.005)
