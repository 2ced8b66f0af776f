"""Signals and closed pipes end a command with the status of shells, without traceback and without worker processes."""

import os
import signal
import subprocess
import sys

import pytest

from tests._utils.test_worker_processes import children, is_running, wait_until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

COMMANDS = """
import os, sys, time
import typer
from joblib import delayed
from psilearn.app.console import report_errors
from psilearn._utils.worker_processes import run_parallel
from psilearn.app.console import CommandGroup

app = typer.Typer(cls=CommandGroup)

def sleep():
    print(os.getpid(), flush=True)
    time.sleep(60)

@app.command()
def resumable():
    with report_errors(resume="Run it again."):
        list(run_parallel((delayed(sleep)() for _ in range(2)), 2))

@app.command()
def other():
    sleep()

@app.command()
def write():
    with report_errors():
        for _ in range(100_000):
            print("line")

if __name__ == "__main__":
    app()
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("commands") / "commands.py"
    path.write_text(COMMANDS)
    return path


def start(script, command, **options):
    arguments = [sys.executable, str(script), command]

    def restore():  # a job in the background or under nohup ignores these, and so would the command
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    options = {"preexec_fn": restore, **options}
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (signal.SIGINT, "Interrupted. Run it again."),
        (signal.SIGTERM, "Terminated by SIGTERM. Run it again."),
        (signal.SIGHUP, "Terminated by SIGHUP. Run it again."),
    ],
)
def test_a_signal_ends_a_command_and_its_workers(script, number, message):
    with start(script, "resumable") as process:
        process.stdout.readline()
        workers = children(process.pid)
        process.send_signal(number)
        assert process.wait(10) == 128 + number
        assert process.stderr.read() == f"{message}\n"
        assert wait_until(lambda: not any(is_running(pid) for pid in workers))


def test_a_signal_outside_of_error_reports_has_no_traceback(script):
    with start(script, "other") as process:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 143 and process.stderr.read() == "Terminated by SIGTERM.\n"


def test_ignored_signals_stay_ignored(script):
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731  # as nohup does
    with start(script, "other", preexec_fn=ignore) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.kill()


def test_a_closed_pipe_is_silent(script):
    with start(script, "write") as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(10) == 128 + signal.SIGPIPE and process.stderr.read() == ""


@pytest.mark.parametrize("arguments", [["data"], ["--version"], ["--help"], ["candidates", "build", "--help"]])
def test_a_closed_pipe_of_the_real_commands_is_silent(arguments):
    code = "from psilearn.app.cli import app; app()"
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["info"]])
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_change_the_exit_status(arguments, closed):
    code = "from psilearn.app import main; main()"
    command = f"exec {sys.executable} -c '{code}' {' '.join(arguments)} {closed}"
    assert subprocess.run(["sh", "-c", command], capture_output=True, check=False).returncode == 0


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path):
    code = (
        "import os, sys; from psilearn.app.console import open_closed_streams; open_closed_streams(); "
        "file = open(sys.argv[1], 'w'); os.write(1, b'lost'); os.write(2, b'lost'); file.close(); assert file.name"
    )
    command = f'exec {sys.executable} -c "{code}" {tmp_path / "file"} <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
    assert (tmp_path / "file").read_text() == ""


def test_an_interruption_while_the_commands_are_imported_has_no_traceback():
    code = """
import sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from psilearn.app import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_version_and_the_help_import_no_numerical_library(option):
    code = (
        "import sys; from psilearn.app.cli import app; app([sys.argv[1]], standalone_mode=False); "
        "print(sorted({'numpy', 'scipy', 'sklearn', 'pandas', 'fastapi'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, option], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith("[]\n"), done.stdout + done.stderr
