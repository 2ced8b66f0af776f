"""Files of the data home: download, checks and error messages."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from psilearn_lab.datasets import data_home
from psilearn_lab.datasets.catalogue import RemoteFile

CONTENT = b"a small file\n" * 100
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(BaseHTTPRequestHandler):
    """Serve the file, complete or truncated, an error page with status 200, or nothing."""

    answers = 0

    def do_GET(self):
        Server.answers += 1
        if self.path == "/nowhere":
            self.send_error(404)
            return
        body = b"<html>please log in</html>" if self.path == "/page" else CONTENT
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:50] if self.path == "/cut" else body)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as http:
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def remaining_files(home):
    return [path for path in home.rglob("*") if path.name != "some"]


def test_the_variable_sets_the_data_home(home, monkeypatch):
    assert data_home() == home
    monkeypatch.delenv("PSILEARN_DATA")
    assert data_home().name == "psilearn_data"


@pytest.mark.parametrize(
    "known", [{"sha256": SHA256}, {"size": len(CONTENT)}, {"sha256": SHA256, "size": len(CONTENT)}]
)
def test_a_missing_file_is_downloaded_once_and_checked(home, server, known):
    file = RemoteFile("some/small.txt", f"{server}/small", **known)
    assert file.fetch().read_bytes() == CONTENT
    answers = Server.answers
    assert file.fetch() == home / "some" / "small.txt" and Server.answers == answers
    assert remaining_files(home) == [home / "some" / "small.txt"]


@pytest.mark.parametrize("known", [{"sha256": SHA256}, {"size": len(CONTENT)}])
@pytest.mark.parametrize("address", ["/cut", "/page", "/nowhere"])
def test_a_failed_download_leaves_no_file_and_names_the_file_and_its_place(home, server, address, known):
    with pytest.raises(FileNotFoundError, match=rf"Download http.*{address} and save it as .*some.small.txt"):
        RemoteFile("some/small.txt", server + address, **known).fetch()
    assert not remaining_files(home)


def test_an_unexpected_file_is_not_kept(home, server):
    with pytest.raises(FileNotFoundError, match=r"does not match the known hash"):
        RemoteFile("some/small.txt", f"{server}/small", "0" * 64).fetch()
    assert not remaining_files(home)


@pytest.mark.parametrize(
    ("known", "words"), [({"sha256": SHA256}, "its sha256 is"), ({"size": 7}, "22 bytes, expected 7")]
)
def test_a_corrupt_file_raises_and_is_not_removed(home, known, words):
    (home / "some").mkdir(parents=True)
    (home / "some" / "small.txt").write_bytes(b"<html>not found</html>")
    with pytest.raises(ValueError, match=rf"small.txt is not the expected file: .*{words}.* from http"):
        RemoteFile("some/small.txt", "http://127.0.0.1:9/", **known).fetch()
    assert (home / "some" / "small.txt").exists()


def test_a_folder_in_place_of_the_file_raises(home):
    (home / "some" / "small.txt").mkdir(parents=True)
    with pytest.raises(ValueError, match="it is not a file"):
        RemoteFile("some/small.txt", sha256=SHA256).fetch()


def test_a_data_home_that_is_a_file_raises(home):
    home.write_text("not a folder")
    with pytest.raises(NotADirectoryError, match=r"home is not a folder: set the variable PSILEARN_DATA"):
        RemoteFile("some/small.txt", "http://127.0.0.1:9/", SHA256).fetch()


def test_a_data_home_without_write_permission_raises(home, monkeypatch):
    def deny(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.makedirs", deny)
    with pytest.raises(FileNotFoundError, match=r"PermissionError.*must be a folder that you can write"):
        RemoteFile("some/small.txt", "http://127.0.0.1:9/", SHA256).fetch()
