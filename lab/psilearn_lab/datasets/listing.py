"""The output of ``psilearn data``: the catalogue, and the state of its files in the data home."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlparse

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from psilearn.app.console import PipeConsole
from psilearn_lab.datasets.catalogue import DATASETS, Dataset, RemoteFile, data_home

_STYLES = {"present": "green", "missing": "yellow", "corrupt": "bold red"}


def show(name: str | None = None, *, verify: bool = False, download: bool = False) -> int:
    """Print all datasets, or the description of one, and return an exit status.

    Parameters
    ----------
    name : str, default=None
        A dataset of the catalogue; by default all datasets are listed.
    verify : bool, default=False
        Whether to compare checksums and not only sizes; a corrupt file then gives the exit status 1.
    download : bool, default=False
        Whether to download missing files that are public first; a failure gives the exit status 1.

    Returns
    -------
    int
        The exit status.
    """
    console = PipeConsole()
    chosen = list(DATASETS.values()) if name is None else [DATASETS[name]]
    downloaded = [_download(console, dataset, named=name is not None) for dataset in chosen] if download else []
    try:
        states = {dataset.name: find_state(dataset, verify) for dataset in chosen}
    except OSError as error:
        console.print(escape(str(error)), style="red")
        return 1
    console.print(f"Data home: {data_home()}", highlight=False, soft_wrap=True)
    if name is None:
        console.print(_make_overview(states))
        console.print(
            "psilearn data NAME describes one dataset; --verify compares checksums; --download downloads public files."
        )
    else:
        _print_dataset(console, DATASETS[name], states[name], verify)
    return int(not all(downloaded) or (verify and "corrupt" in states.values()))


def find_state(dataset: Dataset, verify: bool = False) -> str:
    """Return ``"present"``, ``"missing"`` or ``"corrupt"`` by the sizes and, with ``verify``, by the checksums."""
    states = [_find_file_state(file, verify)[0] for file in dataset.available_form().files]
    return next(state for state in ("corrupt", "missing", "present") if state in states)


def _find_file_state(file: RemoteFile, verify: bool) -> tuple[str, str]:
    """Return the state of a file and a remark on it."""
    if not file.exists():
        return "missing", ""
    fault = file.find_fault(check_hash=verify)
    if fault is not None:
        return "corrupt", fault
    remark = "sha256 agrees" if verify and file.sha256 else "size agrees" if file.size else "size and sha256 unknown"
    return "present", remark


def _download(console: Console, dataset: Dataset, named: bool) -> bool:
    """Download a dataset; return whether this succeeded, or failed for a dataset that was neither public nor named."""
    try:
        with console.status(f"{dataset.name} …"):
            dataset.fetch()
    except (OSError, ValueError) as error:
        style = "red" if dataset.is_public else None
        console.print(f"{dataset.name}: {error}", style=style, markup=False, highlight=False)
        return not (dataset.is_public or named)
    return True


def _make_overview(states: dict[str, str]) -> Table:
    """Return a table with one row per dataset."""
    table = Table("dataset", "state", "size", "folder", "from; license", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.columns[2].justify = "right"
    table.columns[4].overflow = "fold"
    for name, state in states.items():
        dataset = DATASETS[name]
        files = dataset.available_form().files
        folder = files[0].path.rpartition("/")[0] + "/"
        origin = f"{_find_origin(dataset.source)}; {dataset.licence}"
        table.add_row(name, f"[{_STYLES[state]}]{state}[/]", _format_size(files), folder, origin)
    return table


def _print_dataset(console: Console, dataset: Dataset, state: str, verify: bool) -> None:
    """Print the description of a dataset and the state of its files."""

    def write(text: str, address: bool = False) -> None:  # an address is not wrapped, so that it can be copied
        console.print(text, markup=False, highlight=False, soft_wrap=address)

    console.print(f"[bold]{dataset.name}[/]: [{_STYLES[state]}]{state}[/]\n")
    write(f"{dataset.description}\n\nLicense: {dataset.licence}")
    write(f"Source: {dataset.source}", address=True)
    for form in dataset.forms:
        write("\nFiles, below the data home:" if form is dataset.forms[0] else "\nAlternatively:")
        for file in form.files:
            file_state, remark = _find_file_state(file, verify)
            write(f"  {file.path}: {', '.join(filter(None, (file_state, _format_size((file,)), remark)))}")
            if file.url:
                write(f"    {file.url}", address=True)
    if not dataset.is_public:
        write(f"\n{dataset.describe_files()}")


def _format_size(files: Sequence[RemoteFile]) -> str:
    """Return the size of all files with its unit; an empty string if the size of one is unknown."""
    total = 0
    for file in files:
        if file.size is None:
            return ""
        total += file.size
    return f"{total / 1e6:.1f} MB" if total >= 1e5 else f"{total / 1e3:.1f} kB"


def _find_origin(source: str) -> str:
    """Return the host of an address, or the repository for an address on GitHub."""
    address = urlparse(source)
    return "/".join(address.path.split("/")[1:3]) if address.netloc == "github.com" else address.netloc
