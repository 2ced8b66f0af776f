"""Build the site, with warnings as errors, and check the links between its pages; no network is needed.

Usage: ``python -m tools site [--quick | --links]``. Each link to a file or to an anchor that does not exist is printed
on one line; the exit status is 1 if there is any.
"""

import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path("docs/_build/html")
LINKS = {"a": "href", "img": "src", "link": "href", "script": "src"}


class Page(HTMLParser):
    """The links and the anchors of a page.

    Parameters
    ----------
    path : Path
        The HTML file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: set[str] = set()
        self.anchors: set[str] = {"", "top"}
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Store the link of a tag and its anchor."""
        values = {name: value or "" for name, value in attrs}
        if values.get(LINKS.get(tag, "")):
            self.links.add(values[LINKS[tag]])
        self.anchors |= {values[name] for name in ("id", "name") if name in values}


def broken_links(folder: Path) -> Iterator[str]:
    """Yield one line for each link inside a site that leads nowhere."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.glob("**/*.html")) if "_static" not in path.parts}
    for page in pages.values():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or parts.path.startswith("/"):
                continue
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path.resolve()
            if not target.exists():
                yield f"{page.path.relative_to(folder)}: {link} does not exist"
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{page.path.relative_to(folder)}: {link} has no such anchor"


def run_site(arguments: list[str]) -> int:
    """Build the site and check its links; ``--quick`` leaves out the pictures of the gallery, ``--links`` the build."""
    if "--links" not in arguments:
        gallery = ["-D", "plot_gallery=0"] if "--quick" in arguments else []
        command = [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            "-b",
            "html",
            *gallery,
            "docs",
            str(SITE),
        ]
        if status := subprocess.run(command, check=False).returncode:
            return status
    broken = list(broken_links(SITE))
    n_pages = len(list(SITE.glob("**/*.html")))
    print(*broken, f"{n_pages} pages checked, {len(broken)} broken links.", sep="\n")
    return bool(broken) or not n_pages
