"""Worker processes give the results of a loop, and never outlive the process that started them."""

import os
import signal
import subprocess
import sys
import time

import pytest
from joblib import delayed, parallel_config

from psilearn._utils.worker_processes import run_parallel

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

SLEEPERS = """
import os, sys, threading, time
from joblib import delayed
from psilearn._utils.worker_processes import run_parallel

def sleep():
    os.write(1, b"%d\\n" % os.getpid())  # one write: lines of two processes do not mix
    time.sleep(60)

def run():
    list(run_parallel((delayed(sleep)() for _ in range(2)), 3))  # the third process never gets a task

if __name__ == "__main__":
    if sys.argv[1] == "main":
        run()
    else:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
"""


def is_running(pid):
    """Tell whether a process exists and is not a zombie, which has no memory any more."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(done.stdout.strip()) and not done.stdout.strip().startswith("Z")


def children(pid):
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in done.stdout.split()]


def wait_until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize("thread", ["main", "other"])
def test_workers_end_when_their_parent_is_killed(tmp_path, thread):
    (tmp_path / "sleepers.py").write_text(SLEEPERS)
    command = [sys.executable, str(tmp_path / "sleepers.py"), thread]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        busy = {int(process.stdout.readline()), int(process.stdout.readline())}
        started = children(process.pid)
        assert busy <= set(started) and all(is_running(pid) for pid in started)
        process.send_signal(signal.SIGKILL)
        assert wait_until(lambda: not any(is_running(pid) for pid in started))


def test_results_are_in_order_for_every_number_of_processes():
    for n_jobs in (None, 1, 2):
        assert list(run_parallel((delayed(pow)(i, 2) for i in range(7)), n_jobs)) == [i * i for i in range(7)]


def test_a_surrounding_backend_is_used():
    with parallel_config("threading"):
        assert set(run_parallel((delayed(os.getpid)() for _ in range(3)), 2)) == {os.getpid()}
    assert os.getpid() not in set(run_parallel((delayed(os.getpid)() for _ in range(3)), 2))


def end_process():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_is_an_error_that_commands_report():
    with pytest.raises(ChildProcessError, match=r"A worker process ended unexpectedly.*fewer processes than 2"):
        list(run_parallel((delayed(end_process)() for _ in range(2)), 2))
    assert list(run_parallel((delayed(pow)(i, 2) for i in range(3)), 2)) == [0, 1, 4]
