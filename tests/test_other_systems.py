"""psilearn on systems that lack what POSIX has: a process without these modules and functions fits, saves and loads.

The process also rejects what Windows rejects: to remove or replace a file that is open.
"""

import os
import subprocess
import sys

import pytest

WINDOWS = """
import os, signal, sys
import joblib, numpy, scipy.sparse, sklearn.base  # their own use of the modules is not tested here

for name in ("fcntl", "grp", "pwd", "resource", "termios", "posix"):
    sys.modules[name] = None
for name in ("posix_fallocate", "posix_fadvise", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "O_CLOEXEC", "mkfifo",
             "fork", "getuid", "geteuid", "sysconf", "sched_getaffinity", "killpg", "pread", "pwrite"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGALRM", "SIGUSR1"):
    delattr(signal, name)

def is_open(path):
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return os.path.realpath(path) in {os.path.realpath(link) for link in links}

def reject_open_files(function):
    def checked(*paths, **options):
        for path in paths:
            if not isinstance(path, int) and is_open(path):
                raise PermissionError(13, "The file is used by another process", str(path))
        return function(*paths, **options)
    return checked

for name in ("unlink", "remove", "replace", "rename"):
    setattr(os, name, reject_open_files(getattr(os, name)))
"""

USE = """
import sys
import numpy as np
from psilearn import OEL, OELCV, load_model, save_model
from psilearn.kernels import Dice

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((40, 3)), (rng.random((40, 5)) < 0.4).astype(int)
folder = sys.argv[1]
model = OEL(output_kernel=Dice(), n_components=3).fit(X, Y)
save_model(model, folder + "/model")
save_model(model, folder + "/model", overwrite=True)
assert np.array_equal(load_model(folder + "/model").predict(X), model.predict(X))
candidates = model.candidate_set(Y, path=folder + "/candidates")
assert np.array_equal(model.predict(X, candidates=candidates), model.predict(X, candidates=Y))
search = OELCV(output_kernels=Dice(), n_components=[2, 3], cv=2, n_jobs=2).fit(X, Y)
save_model(search, folder + "/search")
load_model(folder + "/search").predict(X)
"""

COMMAND = """
from typer.testing import CliRunner
from psilearn.app.cli import app

result = CliRunner().invoke(app, ["data"])
assert result.exit_code == 0, result.output
"""

COMMANDS = """
from psilearn.app.cli import app

for arguments in (["--help"], ["data"], ["reproduce"], ["demo", "--help"]):
    try:
        app(arguments)
    except SystemExit as error:
        assert not error.code, (arguments, error.code)
        print(arguments, "ended with status 0")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc for open files")
@pytest.mark.parametrize("program", [USE, COMMAND], ids=["library", "command line"])
def test_psilearn_works_without_posix(program, tmp_path):
    if program == COMMAND:
        pytest.importorskip("h5py", reason="the command is one of the laboratory")
    result = subprocess.run(
        [sys.executable, "-c", WINDOWS + program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_commands_print_to_a_terminal_without_unicode(encoding, tmp_path):
    pytest.importorskip("h5py", reason="some of the commands are those of the laboratory")
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PSILEARN_DATA": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", COMMANDS], env=environment, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode(encoding)
    assert result.stdout.decode(encoding).count("ended with status 0") == 4
