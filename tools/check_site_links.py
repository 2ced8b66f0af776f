"""Check the links between the pages of the built site; no network is needed.

Usage: ``python tools/check_site_links.py [FOLDER]``, by default ``docs/_build/html``. Each link to a file or to an
anchor that does not exist is printed on one line; the exit status is 1 if there is any.
"""

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

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


def main(folder: Path) -> int:
    """Print the broken links of a site and return the exit status."""
    broken = list(broken_links(folder))
    n_pages = len(list(folder.glob("**/*.html")))
    print(*broken, f"{n_pages} pages checked, {len(broken)} broken links.", sep="\n")
    return bool(broken) or not n_pages


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/html")))
