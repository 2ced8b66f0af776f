"""What ``psilearn data`` prints: the catalogue, and the state of its files in the data home."""

from __future__ import annotations

from urllib.parse import urlparse

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from psilearn.datasets.catalogue import DATASETS, Dataset
from psilearn.datasets.home import RemoteFile, data_home

_STYLES = {"present": "green", "missing": "yellow", "spoiled": "bold red"}


def show(name: str | None = None, *, verify: bool = False, download: bool = False) -> int:
    """Print all datasets, or one with its description, and return an exit code.

    Parameters
    ----------
    name : str, optional
        a dataset of the catalogue.
    verify : bool
        compare checksums, not only sizes; a spoiled file then makes the code 1.
    download : bool
        fetch first what is missing and public; a failure makes the code 1.
    """
    console = Console()
    chosen = list(DATASETS.values()) if name is None else [DATASETS[name]]
    fetched = [_download(console, dataset, named=name is not None) for dataset in chosen] if download else []
    try:
        states = {dataset.name: state(dataset, verify) for dataset in chosen}
    except OSError as error:
        console.print(escape(str(error)), style="red")
        return 1
    console.print(f"Data home: {data_home()}", highlight=False, soft_wrap=True)
    if name is None:
        console.print(_overview(states))
        console.print("psilearn data NAME shows one; --verify compares checksums; --download fetches what is public.")
    else:
        _print_one(console, DATASETS[name], states[name], verify)
    return int(not all(fetched) or (verify and "spoiled" in states.values()))


def state(dataset: Dataset, verify: bool = False) -> str:
    """Return ``"present"``, ``"missing"`` or ``"spoiled"``: judged by sizes, and by checksums with ``verify``."""
    states = [_file_state(file, verify)[0] for file in dataset.form().files]
    return next(word for word in ("spoiled", "missing", "present") if word in states)


def _file_state(file: RemoteFile, verify: bool) -> tuple[str, str]:
    """Return the state of a file and what there is to say of it."""
    if not file.is_there():
        return "missing", ""
    fault = file.fault(hashed=verify)
    if fault is not None:
        return "spoiled", fault
    checked = "sha256 agrees" if verify and file.sha256 else "size agrees" if file.size else "nothing known to compare"
    return "present", checked


def _download(console: Console, dataset: Dataset, named: bool) -> bool:
    """Fetch a dataset; return whether what was asked for succeeded."""
    public = any(form.can_be_downloaded for form in dataset.forms)
    try:
        with console.status(f"{dataset.name} …"):
            dataset.fetch()
    except (OSError, ValueError) as error:
        console.print(f"{dataset.name}: {error}", style="red" if public else None, markup=False, highlight=False)
        return not (public or named)
    return True


def _overview(states: dict[str, str]) -> Table:
    table = Table("dataset", "state", "size", "folder", "from; licence", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.columns[2].justify = "right"
    table.columns[4].overflow = "fold"
    for name, word in states.items():
        dataset = DATASETS[name]
        files = dataset.form().files
        folder = files[0].path.rpartition("/")[0] + "/"
        whence = f"{_origin(dataset.source)}; {dataset.licence}"
        table.add_row(name, f"[{_STYLES[word]}]{word}[/]", _size(files), folder, whence)
    return table


def _print_one(console: Console, dataset: Dataset, word: str, verify: bool) -> None:
    def say(text: str, address: bool = False) -> None:  # an address is never broken, so that it can be copied
        console.print(text, markup=False, highlight=False, soft_wrap=address)

    console.print(f"[bold]{dataset.name}[/]: [{_STYLES[word]}]{word}[/]\n")
    say(f"{dataset.description}\n\nLicence: {dataset.licence}")
    say(f"Source: {dataset.source}", address=True)
    for form in dataset.forms:
        say("\nFiles, below the data home:" if form is dataset.forms[0] else "\nOr else:")
        for file in form.files:
            file_word, remark = _file_state(file, verify)
            say(f"  {file.path}: {', '.join(filter(None, (file_word, _size((file,)), remark)))}")
            if file.url:
                say(f"    {file.url}", address=True)
    if not any(form.can_be_downloaded for form in dataset.forms):
        say(f"\n{dataset.accepted()}")


def _size(files: tuple[RemoteFile, ...]) -> str:
    """Return the bytes of all files in words; empty where one is unknown."""
    total = 0
    for file in files:
        if file.size is None:
            return ""
        total += file.size
    return f"{total / 1e6:.1f} MB" if total >= 1e5 else f"{total / 1e3:.1f} kB"


def _origin(source: str) -> str:
    """Return the host of an address, or the repository on GitHub."""
    address = urlparse(source)
    return "/".join(address.path.split("/")[1:3]) if address.netloc == "github.com" else address.netloc
