"""Sentences as HTML, for cells' outputs and for pages. Imports nothing else of the course."""

from __future__ import annotations

import html
import re


def as_html(text: str) -> str:
    """One of our sentences, with what stands between backticks set as code; everything is escaped."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
