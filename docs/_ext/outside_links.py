"""Links from a page to a Markdown file outside of docs lead to the page of the site that shows this file.

On a code host the same link leads to the file itself.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

PAGES = {
    "](../CONTRIBUTING.md": "](contributing.md",
    "](../SECURITY.md": "](security.md",
    "](../examples/tables/README.md": "](examples.md",
    "](../examples/extension/README.md": "](examples.md",
}


def redirect(app: Sphinx, page: str, source: list[str]) -> None:
    for outside, inside in PAGES.items():
        source[0] = source[0].replace(outside, inside)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", redirect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
