"""Settings of Sphinx, which makes a site of the repository's Markdown files (`make site`).

The pages are read where they are. README.md is the first page; only the navigation is added here.
"""

from sphinx.application import Sphinx

#: page that shows a part of the navigation → caption → pages, in order
NAVIGATION = {
    "README": {
        "Tutorials": ["docs/tutorial/first-pipeline", "docs/tutorial/first-replica", "docs/tutorial/*"],
        "How-to guides": ["docs/guide/tasks", "docs/guide/deploy", "docs/guide/*"],
        "Operations": ["docs/operations/README", "docs/operations/*"],
        "Reference": ["docs/reference/*", "The Helm chart <charts/databus/README>", "libs/*/README"],
        "Explanation": ["docs/explanation/guarantees", "docs/explanation/path-of-a-row", "docs/explanation/*"],
        "Decisions": ["docs/adr/README"],
        "The project": ["CONTRIBUTING", "CHANGELOG"],
    },
    "docs/adr/README": {"All decisions": ["[0-9]*"]},
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
html_use_index = False
html_show_sphinx = False


def add_navigation(_app: Sphinx, page: str, text: list[str]) -> None:
    """Append to a page the part of the navigation that it shows."""
    text[0] += "".join(
        f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"
        for caption, pages in NAVIGATION.get(page, {}).items()
    )


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", add_navigation)
