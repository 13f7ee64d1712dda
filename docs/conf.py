"""How `make docs` builds the site: pages are Markdown, tutorials are run, and tables of options come from the code."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

# Tutorials run in processes of their own, each in an empty folder. Their graphs are too small for more than one thread.
os.environ |= {"G3NN_REPOSITORY": str(HERE.parent), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

from g3nn.base.version import __version__  # noqa: E402

project = "g3nn"
author = "the g3nn authors"
copyright = author
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "docstrings", "from_the_code", "mathml", "outside_links"]
exclude_patterns = ["_ext", "_static"]
nitpicky = True
smartquotes = False  # A prime in a formula is no quotation mark.

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# Types of other packages, and of ours that are not part of the public face, are named without a link.
nitpick_ignore_regex = [("py:(class|obj|data)", ".*")]

html_theme = "furo"
html_title = "g3nn"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # It is fetched, which a browser forbids for pages that lie in a folder.
html_last_updated_fmt = None
