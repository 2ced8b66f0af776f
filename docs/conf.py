"""Configuration of the site; CONTRIBUTING.md has the command that builds it."""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_extensions")]

import psilearn  # noqa: E402
from tools import api_reference  # noqa: E402

api_reference.write_pages(HERE / "api")

project = "psilearn"
author = "The psilearn developers"
copyright = "The psilearn developers"
version = release = psilearn.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "myst_parser",
    "numpydoc",
    "site_links",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "_extensions",
    "_templates",
    "auto_examples/**/*.ipynb",
    "auto_examples/**/*.py",
]
templates_path = ["_templates"]
root_doc = "index"
# Gallery examples are run when the site is built: their objects are not pickled with the environment.
suppress_warnings = ["config.cache"]

# Markdown
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

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
    "header_links_before_dropdown": 7,
    "navbar_persistent": ["search-button"],
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
