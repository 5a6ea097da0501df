"""A hook of MkDocs: links to files of the repository become their paths, because the site has no such pages."""

from __future__ import annotations

import re
from typing import Any, Final

_OUTSIDE: Final = re.compile(r"\[(?P<text>[^\]]+)\]\(\.\./(?P<path>[^)]+)\)")


def on_page_markdown(markdown: str, **_page: Any) -> str:
    """Return the page without links that lead out of `docs/`; the repository shows them as links."""
    return _OUTSIDE.sub(lambda link: _named(link["text"], link["path"]), markdown)


def _named(text: str, path: str) -> str:
    return f"`{path}`" if text.strip("`").rstrip("/") in path else f"{text} (`{path}`)"
