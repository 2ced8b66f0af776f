"""Formulas as MathML, which browsers show without scripts and without a network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def visit_math(translator, node):
    """Write an inline formula."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_displaymath(translator, node):
    """Write a formula on lines of its own."""
    translator.body.append(f'<div class="math-block">{tex2mathml(node.astext().strip(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
