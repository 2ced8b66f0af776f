"""New virtual environments for checks of the installed package."""

import os
import subprocess
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def new_environment(requirements: Sequence[str]) -> Iterator[tuple[Path, Path]]:
    """Install requirements of pip into a new environment; yield its folder of programs and an empty working folder.

    The environment is removed afterwards.
    """
    with TemporaryDirectory() as folder:
        venv.create(Path(folder, "environment"), with_pip=True)
        programs = Path(folder, "environment", "Scripts" if os.name == "nt" else "bin")
        work = Path(folder, "work")
        work.mkdir()
        run_program([str(programs / "python"), "-m", "pip", "install", "--quiet", *requirements], work)
        yield programs, work


def run_program(command: Sequence[str], work: Path) -> str:
    """Run a program in a folder without the paths of the calling environment, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    result = subprocess.run(command, cwd=work, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return result.stdout
