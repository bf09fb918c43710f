"""Sphinx's settings for the web book; `autograder/authoring/book.py` lays out its pages and calls it."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "Every Byte, Every FLOP"
author = "the authors of Every Byte, Every FLOP"
project_copyright = ""
language = "en"

extensions = ["myst_nb", "sphinx_copybutton", "native"]
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # the notebooks come with their outputs
nb_merge_streams = True  # rows that a cell printed one after another are one table
nb_ipywidgets_js = {}  # would come from another server
suppress_warnings = ["myst.header"]  # a cell may begin with a heading of any depth
exclude_patterns = ["README.md"]  # index.md includes it

html_theme = "sphinx_book_theme"
html_title = project
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["book.css", "explorers/explorer.css"]
html_js_files = [("explorers/wake.js", {"defer": "defer"}), ("paper.js", {"defer": "defer"})]
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_math_renderer = "native"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "use_download_button": False,
    "show_navbar_depth": 1,
    "show_toc_level": 1,
    "home_page_in_toc": True,
    "navbar_persistent": [],  # the search is in the sidebar, and on a phone above the article
    "back_to_top_button": False,  # it would cover pictures and their captions
}
# GitHub sets these where a workflow builds the book.
if repository := os.environ.get("GITHUB_REPOSITORY"):
    html_theme_options |= {
        "repository_url": f"{os.environ['GITHUB_SERVER_URL']}/{repository}",
        "use_repository_button": True,
        # `course colab` makes this branch. Only pages of notebooks get the button.
        "repository_branch": "colab",
        "launch_buttons": {"colab_url": "https://colab.research.google.com"},
    }
