"""The site: the API reference is complete, quoted messages exist, links are checked."""

import inspect
import json
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

import psilearn

pytest.importorskip("typer", reason="the pages of the application need the extra psilearn[app]")
pytest.importorskip("rdkit", reason="the pages of the chemistry package need psilearn-chem")

from tools import api_reference, site

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SVG = "{http://www.w3.org/2000/svg}"


def exported_paths():
    """Return the paths of all names in ``__all__`` of all public modules, without modules and the command line."""
    names = set()
    for source in [ROOT / "src", ROOT / "packages" / "psilearn-chem" / "src"]:
        files = [path.relative_to(source).with_suffix("") for path in source.rglob("*.py")]
        public = [path for path in files if not re.search(r"(^|/)_[^_]", str(path))]
        names |= {".".join(path.parts).removesuffix(".__init__") for path in public}
    modules = [import_module(name) for name in names if not name.startswith("psilearn.app.cli")]
    top = [module for module in modules if module.__name__.count(".") == 1 and module.__name__.startswith("psilearn.")]
    packages = [module for module in modules if hasattr(module, "__path__")]
    return {
        f"{module.__name__}.{name}"
        for module in {*top, *packages}
        for name in getattr(module, "__all__", ())
        if not inspect.ismodule(getattr(module, name))
    }


def listed_paths(folder):
    """Return the paths of the names that the pages of the reference list, in order."""
    listed = []
    for page in folder.glob("psilearn*.rst"):
        text = page.read_text("utf-8")
        described = re.findall(r"^   ([A-Za-z_]\w*)$", text, re.MULTILINE)
        linked = re.findall(r"^- ``(\w+)``: :obj:", text, re.MULTILINE)
        listed += [f"{page.stem}.{name}" for name in described + linked]
        listed += re.findall(r"^\.\. (?:autodata|py:data):: (\S+)$", text, re.MULTILINE)
    return listed


def test_the_reference_lists_exactly_the_public_names(tmp_path):
    api_reference.write_pages(tmp_path)
    listed = listed_paths(tmp_path)
    assert set(listed) == exported_paths()
    assert [path for path, count in Counter(listed).items() if count > 1] == []


def test_each_public_object_is_described_once_under_its_shortest_path():
    described = api_reference.described_paths()
    assert described["psilearn.estimators.OEL"] == described["psilearn.OEL"] == "psilearn.OEL"
    assert described["psilearn_chem.spectra.Spectrum"] == "psilearn_chem.Spectrum"
    assert all(described[path] == path for path in described.values())


def test_pages_of_names_that_do_not_exist_are_removed(tmp_path):
    (tmp_path / "generated").mkdir()
    for name in ("psilearn.nothing.rst", "generated/psilearn.Nothing.rst", "generated/psilearn.OEL.rst"):
        (tmp_path / name).write_text("old", encoding="utf-8")
    api_reference.write_pages(tmp_path)
    assert [path.name for path in (tmp_path / "generated").iterdir()] == ["psilearn.OEL.rst"]
    assert not (tmp_path / "psilearn.nothing.rst").exists()


def test_a_class_lists_inherited_members_of_psilearn_but_not_of_scikit_learn():
    members = api_reference.public_members("psilearn.OEL")
    assert {"fit", "predict", "predict_set", "truth_positions"} <= set(members["methods"])
    assert not [name for name in members["methods"] if name.endswith("_request") or name == "get_params"]
    assert "__call__" in api_reference.public_members("psilearn.kernels.Gaussian")["methods"]


def test_the_messages_in_the_faq_are_messages_of_the_code():
    folders = [ROOT / "src", ROOT / "packages", ROOT / "lab"]
    source = "\n".join(path.read_text("utf-8") for folder in folders for path in folder.rglob("*.py"))
    source = re.sub(r'["\']\s*\n\s*f?["\']', "", source)  # adjacent parts of a message are one text
    headings = re.findall(r"^### (`.*)$", (DOCS / "faq.md").read_text("utf-8"), re.MULTILINE)
    fragments = [fragment for heading in headings for fragment in re.findall(r"`([^`]+)`", heading)]
    assert len(fragments) >= 10
    patterns = {fragment: re.escape(fragment).replace("…", r"\{[^{}\n]+\}") for fragment in fragments}
    assert [fragment for fragment, pattern in patterns.items() if not re.search(pattern, source)] == []


def test_broken_links_are_found(tmp_path):
    (tmp_path / "index.html").write_text(
        '<h1 id="here">x</h1><a href="#here"></a><a href="#gone"></a><a href="other.html#there"></a>'
        '<a href="missing.html"></a><a href="https://example.org"></a><img src="picture.svg">',
        encoding="utf-8",
    )
    (tmp_path / "other.html").write_text('<p id="there"></p>', encoding="utf-8")
    assert list(site.broken_links(tmp_path)) == [
        "index.html: #gone has no such anchor",
        "index.html: missing.html does not exist",
        "index.html: picture.svg does not exist",
    ]


def test_the_version_switcher_has_this_version():
    versions = json.loads((DOCS / "_static" / "versions.json").read_text("utf-8"))
    assert psilearn.__version__ in [entry["version"] for entry in versions]


def test_every_page_is_in_a_table_of_contents():
    entries = {"index"}
    for page in DOCS.glob("*.md"):
        for toctree in re.findall(r"^:::\{toctree\}\n(.*?)^:::$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE):
            lines = [line for line in toctree.splitlines() if line and not line.startswith(":")]
            entries |= {re.sub(r".*<(.*)>", r"\1", line) for line in lines}
    pages = {page.stem for page in DOCS.glob("*.md")}
    assert sorted(pages - entries) == [], "name the page in a toctree, such as that of docs/user_guide.md"
    assert sorted(entry for entry in entries - pages if "/" not in entry) == []


@pytest.mark.parametrize("path", sorted(DOCS.glob("images/*.svg")), ids=lambda path: path.name)
def test_diagrams_scale_and_have_a_title(path):
    svg = ElementTree.parse(path).getroot()
    assert svg.get("viewBox") and svg.get("width") is None
    assert svg.findtext(f"{SVG}title")
