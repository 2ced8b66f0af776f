"""Links of the site: public names in text and docstrings, files of the repository, and bars in docstrings."""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref

from tools import api_reference

REPOSITORY_PAGES = ("CHANGELOG", "CONTRIBUTING", "SECURITY")
PUBLIC_NAME = re.compile(r"((?:psilearn\.)?[\w.]*\w)(?:\(.*\))?")

DESCRIBED = api_reference.described_paths()
PATHS_BY_ENDING = {}  # "OEL", "estimators.OEL" and "psilearn.estimators.OEL" → paths of descriptions
for path, described in DESCRIBED.items():
    parts = path.split(".")
    for start in range(len(parts)):
        PATHS_BY_ENDING.setdefault(".".join(parts[start:]), []).append(described)


def resolve_public_name(app, env, node, contnode):
    """Resolve a reference to a public name by a shorter or an equivalent path, such as OEL or estimators.OEL."""
    target = node.get("reftarget", "").lstrip("~.")
    domain = env.get_domain("py")
    for path in PATHS_BY_ENDING.get(target, ()) if node.get("refdomain") == "py" else ():
        if path in domain.objects:
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", path, node, contnode)
    return None


def link_names_in_text(app, doctree):
    """Link inline code of the guide to the reference if it is a public name, such as OEL or save_model(search, path).

    A single lowercase word may mean something else and is not linked.
    """
    if app.env.docname.startswith(("api/", "auto_examples/")):
        return
    for literal in list(doctree.findall(nodes.literal)):
        match = PUBLIC_NAME.fullmatch(literal.astext())
        name = match[1] if match else ""
        is_word = name.islower() and not re.search("[._]", name)
        paths = set(PATHS_BY_ENDING.get(name, ()))
        if (
            len(paths) == 1
            and not is_word
            and not isinstance(literal.parent, nodes.reference | pending_xref | nodes.title)
        ):
            link = pending_xref(
                "", refdomain="py", reftype="obj", reftarget=paths.pop(), refdoc=app.env.docname, refexplicit=True
            )
            literal.replace_self(link)
            link += literal


def link_included_pages(app, docname, source):
    """Let links to Markdown files in the root of the repository lead to the pages that include them."""
    for name in REPOSITORY_PAGES:
        source[0] = source[0].replace(f"](../{name}.md)", f"]({name.lower()}.md)")


def shorten_paths(app, relative_path, parent_docname, content):
    """Let links of an included page that start at the root of the repository start at the page."""
    content[0] = content[0].replace("](docs/", "](")


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


def setup(app):
    """Register the functions above."""
    app.connect("missing-reference", resolve_public_name)
    app.connect("doctree-read", link_names_in_text)
    app.connect("source-read", link_included_pages)
    app.connect("include-read", shorten_paths)
    app.connect("autodoc-process-docstring", escape_bars, priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
