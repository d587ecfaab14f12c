"""Settings of Sphinx, which makes a site of the repository's Markdown files (`make site`).

The pages are read where they are. README.md is the first page; only the navigation is added to it here.
"""

from sphinx.application import Sphinx

#: caption in the navigation → pages, in order
NAVIGATION = {
    "Tutorials": ["docs/tutorial/*"],
    "How-to guides": ["docs/guide/tasks", "docs/guide/deploy", "docs/guide/*"],
    "Reference": ["docs/reference/*", "charts/databus/README", "libs/*/README"],
    "Explanation": ["docs/explanation/path-of-a-row", "docs/explanation/*"],
    "Decisions": ["docs/adr/README", "docs/adr/*"],
    "The project": ["CONTRIBUTING", "CHANGELOG"],
}

project = "MySQL Databus"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "charts/*/README.md", "libs/*/README.md"]
exclude_patterns = [".*", "**/build", "**/src", "build", "bench-results", "requirements", "services", "tests"]
#: headings have the anchors that GitHub gives them
myst_heading_anchors = 6
#: examples shorten JSON and Python with …, which the highlighter cannot read
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_sphinx = False


def add_navigation(_app: Sphinx, page: str, text: list[str]) -> None:
    """Append the navigation to the first page."""
    if page == root_doc:
        text[0] += "".join(
            f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"
            for caption, pages in NAVIGATION.items()
        )


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", add_navigation)
