"""Sphinx configuration. `make docs` builds the site."""

import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import keras  # noqa: E402

from keras_onlstm.version import __version__  # noqa: E402

project = "keras_onlstm"
author = "keras_onlstm contributors"
copyright = author
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
extensions += ["gallery"]  # gallery.py in this folder
exclude_patterns = ["conf.py", "draw_*.py", "gallery.py"]

# Pages are Markdown, without substitutions in double braces.
myst_enable_extensions = ["dollarmath", "attrs_inline"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

# Notebooks run while the site is built, each in its own process.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
nb_output_stderr = "remove"

# Docstrings have Keras's style: Google's sections, `Call arguments`, code in backticks.
default_role = "code"
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Call arguments", "params_style")]
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "imported-members": True, "show-inheritance": False}

html_theme = "furo"
html_show_sourcelink = html_copy_source = False
html_title = "keras_onlstm"
html_favicon = "../web/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
copybutton_exclude = ".linenos, .gp, .go"


def _as_restructured_text(app, what, name, obj, options, lines):
    """Converts backticks, stars and tables of Markdown in docstrings to reStructuredText."""
    text = "\n".join(lines)
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    text = re.sub(r"(?<=[\w)}\"\]])`(?=\w)", r"`\\ ", text)  # e.g. `Tree`s
    text = re.sub(r"(?<![`\\*\w])(\*{1,2})(\w+)(?=[\s:,.])", r"\\\1\2", text)
    text = re.sub(r"(?:^ *\|.*\|\n?)+", _as_list_table, text, flags=re.MULTILINE)
    lines[:] = text.split("\n")


def _as_list_table(match):
    rows = [line.strip()[1:-1].split(" | ") for line in match[0].strip().splitlines()]
    indent = match[0][: len(match[0]) - len(match[0].lstrip())]
    table = [".. list-table::", "   :header-rows: 1", ""]
    for head, *cells in (rows[0], *rows[2:]):
        table.append(f"   * - {head.strip()}")
        table += [f"     - {cell.strip()}" for cell in cells]
    return "".join(f"{indent}{line}\n" for line in ["", *table, ""])


def _is_skipped(app, what, name, obj, skip, options):
    """Fields of named tuples are described with their class."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def _signature(app, what, name, obj, options, signature, returned):
    """Shows the arguments of constructors that Keras's metaclass hides."""
    if what != "class" or not issubclass(obj, keras.layers.Layer | keras.Model | type(None)):
        return None
    _, *parameters = inspect.signature(inspect.unwrap(obj.__init__)).parameters.values()
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return str(inspect.Signature(parameters)), None


def setup(app):
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _is_skipped)
    app.connect("autodoc-process-docstring", _as_restructured_text, priority=100)
