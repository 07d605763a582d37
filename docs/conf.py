"""The documentation site: `make docs` builds it from the pages of this folder and the docstrings of the library.

Pages are Markdown (MyST) as it is read on the web, with relative links and the anchors of headings; both are checked.
Docstrings are those of numpydoc, where `code` in single backticks is a link if it is a name that has an entry.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole

from docs.reference_pages import as_rst, write_pages
from rosenblatt import __version__

project = "rosenblatt"
version = release = __version__
html_title = f"rosenblatt {version}"
html_theme = "furo"
pygments_dark_style = "github-dark"  # the theme's own underlines names as if they were links
html_static_path = ["static"]
html_css_files = ["site.css"]
smartquotes = False  # quotation marks are those that Python takes
html_show_copyright = False
html_copy_source = False
html_search_scorer = str(Path(__file__).parent / "static" / "search_scores.js")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
# What is searched for in other words than those of a heading: page, anchor, words.
SEARCHED = [
    ("howto/questions", "handle-rare-classes", "class imbalance, imbalanced classes, class_weight"),
    (
        "howto/questions",
        "why-does-it-not-converge-and-how-do-i-stop-it",
        "ConvergenceWarning, not converged, early stopping",
    ),
    ("howto/questions", "what-is-the-warning-unscaledcolumns", "UnscaledColumns, scaling, StandardScaler"),
    ("howto/questions", "get-probabilities", "probability, predict_proba, calibration"),
    ("howto/questions", "tune-it-in-a-pipeline-or-a-grid-search", "GridSearchCV, pipeline, cross validation"),
    ("howto/questions", "explain-a-prediction", "feature importance, coefficients"),
    ("howto/questions", "train-on-my-csv", "CSV, pandas, DataFrame"),
    ("howto/questions", "continue-training", "partial_fit, warm_start, incremental learning"),
    ("howto/tables", "what-is-done-to-it", "missing values, NaN"),
    ("howto/saving", "saving-loading-exporting", "model file, pickle"),
    ("howto/saving", "to-other-programs", "export, ONNX"),
    ("learners/perceptron", "when-it-stops", "tol, max_iter, n_iter_no_change, early_stopping"),
    ("learners/perceptron", "the-step-margin-eta0-learning-rate", "learning rate, eta0, learning_rate"),
    ("learners/perceptron", "which-weights-to-keep", "averaged perceptron, keep, voted perceptron, pocket"),
    ("theory/bound", "the-mistake-bound", "Novikoff, convergence theorem"),
]

exclude_patterns = ["figures", "screenshots"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # a copied example is code alone
copybutton_prompt_is_regexp = True

default_role = "py:name"
autodoc_typehints = "none"  # the docstrings say what is allowed
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_param = False  # types are words, not links
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 100


class NameRole(PyXRefRole):
    """Code in single backticks, shown as it is written, and a link where it names something of the reference."""

    def process_link(self, env: Any, refnode: Any, has_explicit_title: bool, title: str, target: str) -> tuple[str, str]:
        refnode["reftype"] = "obj"
        _, found = super().process_link(env, refnode, has_explicit_title, title, target.partition("(")[0])
        return title, found


# A list of pages may end with "and all others", of which there may be none.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(lambda record: "glob pattern" not in str(record.msg))


def add_search_words(app: Sphinx, doctree: nodes.document) -> None:
    """Put the words of SEARCHED into the index, which the search looks at first."""
    here = app.env.current_document.docname
    entries = [
        ("single", word, anchor, "main", None)
        for page, anchor, words in SEARCHED
        if page == here
        for word in words.split(", ")
    ]
    if entries:
        doctree.append(addnodes.index(entries=entries))


def draw_dashes(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Draw the dash between a parameter and its description, which Sphinx leaves as two hyphens without smart quotes."""
    for text in list(doctree.findall(nodes.Text)):
        for hyphens in (" -- ", ") -- "):  # after the name of a parameter, or its type
            if text.startswith(hyphens) and isinstance(text.parent, nodes.paragraph):
                text.parent.replace(text, nodes.Text(text.replace("--", "–", 1)))


def setup(app: Sphinx) -> None:
    app.add_role_to_domain("py", "name", NameRole())
    app.connect("config-inited", lambda app, config: write_pages())
    app.connect("doctree-read", add_search_words)
    app.connect("doctree-resolved", draw_dashes)
    app.connect("autodoc-process-docstring", lambda *event: as_rst(event[-1]), priority=400)  # before napoleon
