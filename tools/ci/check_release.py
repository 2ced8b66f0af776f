"""Compare the version of the package, the changelog, the citation and a tag before a release.

``python tools/ci/check_release.py v0.1.0`` returns 1 and lists what does not agree; without a tag, only the files are
compared.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def find_disagreements(root: Path, tag: str | None = None) -> list[str]:
    """Return one sentence per place that does not have the version of the package."""
    version = _search(root / "src/psilearn/__init__.py", r'^__version__ = "(.+)"$')
    dated = _search(root / "CHANGELOG.md", rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)$")
    cited = _search(root / "CITATION.cff", r'^version: "?([^"\n]+)"?$')
    released = _search(root / "CITATION.cff", r'^date-released: "?([^"\n]+)"?$')
    recipe = _search(root / "recipe/meta.yaml", r'^{% set version = "(.+)" %}$')
    problems = {
        f"CHANGELOG.md has no section '## {version} (date)'.": not dated,
        f"CITATION.cff has the version {cited!r}, not {version!r}.": cited != version,
        f"CITATION.cff has the date {released!r}, CHANGELOG.md {dated!r}.": released != dated,
        f"recipe/meta.yaml has the version {recipe!r}, not {version!r}.": recipe != version,
        f"The tag is {tag!r}, not 'v{version}'.": tag is not None and tag != f"v{version}",
    }
    return [sentence for sentence, is_wrong in problems.items() if is_wrong]


def _search(file: Path, pattern: str) -> str:
    """Return the first group of the first match in a file, or nothing."""
    match = re.search(pattern, file.read_text("utf-8"), re.MULTILINE)
    return match[1] if match else ""


def main(arguments: list[str]) -> int:
    """Print the disagreements; return 1 if there are any."""
    problems = find_disagreements(ROOT, arguments[0] if arguments else None)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
