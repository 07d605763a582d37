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

from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole

from docs.reference_pages import as_rst, write_pages
from rosenblatt import __version__

project = "rosenblatt"
version = release = __version__
html_title = f"rosenblatt {version}"
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
smartquotes = False  # quotation marks are those that Python takes
html_show_copyright = False
html_copy_source = False

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
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


def setup(app: Sphinx) -> None:
    app.add_role_to_domain("py", "name", NameRole())
    app.connect("config-inited", lambda app, config: write_pages())
    app.connect("autodoc-process-docstring", lambda *event: as_rst(event[-1]), priority=400)  # before napoleon
