"""Settings of the documentation: `make docs`, or python -m sphinx docs site. Nothing is loaded from the network."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "evidence"))

project = "unbraid"
author = "The unbraid developers"
copyright = author
release = version = metadata.version("unbraid")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "myst_nb",
    "pages.mathematics",
    "pages.reference",
    "pages.site",
]
exclude_patterns = ["pages", "_build", "**.ipynb_checkpoints"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}

default_role = "py:obj"
smartquotes_action = "D"  # dashes; quotes stay as they are written
autodoc_member_order = "bysource"
autodoc_default_options = {"special-members": "__call__, __contains__, __getitem__, __iter__, __len__"}
autodoc_typehints = "none"  # they stand in the signature, as written
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Reference", "Source and departures from it")]
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
maximum_signature_line_length = 80
add_module_names = False
python_display_short_literal_types = True
toc_object_entries = False

myst_enable_extensions = ["attrs_block", "attrs_inline", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.xref_missing"]  # of anchors within a text; tests/docs/test_site.py follows every link
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # seconds a cell: ten at most, but for a machine that has much else to do
nb_execution_in_temp = True
nb_execution_show_tb = True
nb_output_stderr = "remove-warn"  # a warning in a tutorial is a fault

html_theme = "pydata_sphinx_theme"
html_title = "unbraid"
html_math_renderer = "offline"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_js_files = ["custom.js"]
html_sidebars = {name: [] for name in ("index", "quickstart", "gallery")}  # with nothing below them
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "unbraid"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "search_as_you_type": True,
    "search_bar_text": "Search",
    "show_prev_next": True,
    "collapse_navigation": True,
    "show_toc_level": 2,
    "navigation_depth": 4,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "friendly",
    "pygments_dark_style": "github-dark",
}
copybutton_prompt_text = ">>> |\\.\\.\\. |\\$ "
copybutton_prompt_is_regexp = True
