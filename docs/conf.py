"""Configuration of the site; CONTRIBUTING.md has the command that builds it."""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

import api_reference  # noqa: E402

import psilearn  # noqa: E402

api_reference.write_pages(HERE / "api")

project = "psilearn"
author = "The psilearn developers"
copyright = "The psilearn developers"
version = release = psilearn.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "myst_parser",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "records", "auto_examples/**/*.ipynb", "auto_examples/**/*.py"]
templates_path = ["_templates"]
root_doc = "index"
# Gallery examples are run when the site is built: their objects are not pickled with the environment.
suppress_warnings = ["config.cache"]

# Markdown
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_fence_as_directive: list[str] = []

# Docstrings
autosummary_generate = True
autosummary_context = {"public_members": api_reference.public_members}
autosummary_imported_members = True
autodoc_typehints = "none"  # numpydoc states the types
autodoc_member_order = "alphabetical"
add_module_names = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# Gallery: files plot_*.py are executed, other files are shown.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": [f"../examples/{topic}" for topic in ("outputs", "method", "selection", "practice")],
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"__init__\.py",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "plot_gallery": "True",
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "doc_module": ("psilearn",),
    "backreferences_dir": "api/backreferences",
    "reference_url": {"psilearn": None},
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# HTML. SITE_URL is the address of the folder that holds one folder per version and the newest versions.json.
site_url = os.environ.get("SITE_URL", "").rstrip("/")
html_theme = "pydata_sphinx_theme"
html_title = f"psilearn {version}"
html_static_path = ["_static"]
html_css_files = ["psilearn.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_baseurl = f"{site_url}/{version}/" if site_url else ""
html_theme_options = {
    "logo": {"text": "psilearn", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "header_links_before_dropdown": 6,
    "navbar_end": ["version-switcher", "theme-switcher"],
    "switcher": {
        "json_url": f"{site_url}/versions.json" if site_url else "_static/versions.json",
        "version_match": version,
    },
    "check_switcher": not site_url,
    "show_nav_level": 1,
    "navigation_depth": 2,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": [], "getting_started": [], "faq": [], "changelog": []}

# Links. Only links inside the site are checked: the build must work offline.
linkcheck_ignore = [r"^https?://", r"^mailto:"]
copybutton_exclude = ".linenos, .gp, .go"


def resolve_public_name(app, env, node, contnode):
    """Resolve a reference to a public name by a shorter or an equivalent path, such as OEL or estimators.OEL."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target:
        return None
    domain = env.get_domain("py")
    for path in _paths_by_ending.get(target.lstrip("~."), ()):
        found = domain.objects.get(path)
        if found:
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", path, node, contnode)
    return None


_paths_by_ending: dict[str, list[str]] = {}
for _path, _described in api_reference.described_paths().items():
    _parts = _path.split(".")
    for _start in range(len(_parts)):
        _paths_by_ending.setdefault(".".join(_parts[_start:]), []).append(_described)


def escape_bars(app, what, name, obj, options, lines):
    """Escape the bars of norms and sizes such as |y|, which reStructuredText reads as substitutions.

    Literals and doctests are left as they are.
    """
    in_doctest = False
    for number, line in enumerate(lines):
        in_doctest = line.lstrip().startswith(">>>") or (in_doctest and bool(line.strip()))
        if "|" in line and not in_doctest:
            parts = line.split("``")
            lines[number] = "``".join(part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts))


def link_included_pages(app, docname, source):
    """Let links to Markdown files in the root of the repository lead to the pages that include them."""
    for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"):
        source[0] = source[0].replace(f"](../{name}.md)", f"]({name.lower()}.md)")


def shorten_paths(app, relative_path, parent_docname, content):
    """Let links of an included page that start at the root of the repository start at the page."""
    content[0] = content[0].replace("](docs/", "](")


def setup(app):
    """Register the functions above."""
    app.connect("source-read", link_included_pages)
    app.connect("include-read", shorten_paths)
    app.connect("missing-reference", resolve_public_name)
    app.connect("autodoc-process-docstring", escape_bars, priority=900)  # after numpydoc
