"""Reads a page as a browser would, and says what in it could do something."""

from __future__ import annotations

from html.parser import HTMLParser

# Everything that a browser might run, fetch or send; the rest of a page is text and boxes.
ACTIVE = {"script", "iframe", "object", "embed", "form", "input", "button", "link", "base", "img", "audio", "video",
          "source", "track", "template", "portal", "frame", "frameset", "applet", "math", "textarea", "select", "image",
          "foreignobject", "animate", "set", "noscript"}  # fmt: skip
ATTRIBUTES = {"class", "id", "href", "lang", "charset", "content", "name", "http-equiv", "scope", "tabindex", "role",
              "aria-label", "aria-labelledby", "aria-hidden", "title", "xmlns", "viewbox", "width", "height", "fill",
              "style", "d", "transform", "clip-path", "x", "y", "open"}  # fmt: skip

NASTY = [
    "<script>alert(1)</script>",
    "</code></pre><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>' autofocus onfocus=alert(1) x='",
    "{{ 7 * 7 }}{% include 'page.css' %}",
    "</style><style>@import 'http://example.org'</style>",
    "<!-- --!> <a href='javascript:alert(1)'>x</a>",
    "&lt;b&gt; &amp; ]]>",
]


class Page(HTMLParser):
    """A page's tags, the targets of its links, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.policy = ""
        self._text: list[str] = []
        self._style = False
        self.feed(html)
        self.close()
        self.text = "".join(self._text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._style = tag == "style"
        self.attributes |= {name for name, _ in attrs}
        values = dict(attrs)
        if "href" in values:
            self.links.append(values["href"] or "")
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        self._style = False

    def handle_data(self, data: str) -> None:
        if not self._style:
            self._text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")


def harmless(html: str) -> Page:
    """The page, after looking that nothing in it is active, comes from elsewhere, or hides."""
    page = Page(html)
    assert page.tags & ACTIVE == set()
    assert page.attributes <= ATTRIBUTES, page.attributes - ATTRIBUTES
    assert page.policy.startswith("default-src 'none'") and "script" not in page.policy
    assert all(link.startswith(("#", "../feedback/")) for link in page.links), page.links
    html.encode("utf-8")
    assert not [c for c in html if (ord(c) < 32 and c not in "\n\t") or c in "\x7f\u202e\u2066\u2069\u200f\ufeff"]
    return page
