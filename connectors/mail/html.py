"""HTML of mails to plain text: what a reader sees, and the same without the quoted mail below it.

A hostile mail can make any HTML parser slow (cost grows with the depth at each tag), so the depth is counted first; beyond the
bound the tags are only cut out.
"""

from __future__ import annotations

import html as entities
import re
from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_HTML_CHARS = 2 * 1024 * 1024
"""Without inline images; beyond this the rest is not read. Eight times the text that travels, and two seconds of work."""

MAX_DEPTH_SUM = 20_000_000
"""Sum of the open tags at each tag. 200,000 nested tags (2·10¹⁰) take the parser two minutes; newsletters stay under 10⁶."""

MAX_QUOTES = 200

_UNSEEN = ("script", "style", "head", "title", "noscript", "template", "svg", "iframe", "object", "[hidden]")
# fmt: off
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "center", "dd", "div", "dl", "dt", "fieldset", "footer", "form", "h1", "h2", "h3", "h4",
    "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "pre", "section", "table", "tr", "ul",
})
_UNNESTED = frozenset({
    "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta", "option", "p", "param", "source", "td",
    "th", "tr", "track", "wbr",
})
# fmt: on
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)([^<>]*)>|<!--|-->")
_INLINE_DATA = re.compile(r"data:[^\"'\s<>]{200,}")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|mso-hide\s*:\s*all", re.IGNORECASE)
_QUOTES = (
    ".gmail_quote",
    ".gmail_quote_container",
    "blockquote[type=cite]",
    ".yahoo_quoted",
    ".moz-cite-prefix",
    ".protonmail_quote",
)
_QUOTE_STARTS = ("#divRplyFwdMsg", "#appendonsend", "#mail-editor-reference-message-container")
"""Outlook marks only where the quoted mail starts; it goes on to the end."""


def html_to_text(html: str) -> tuple[str, str]:
    """(all the text, the text without quotes: "" if nothing is marked as a quote). Blocks are lines, cells are set apart by a blank."""
    html = _INLINE_DATA.sub("", html)[:MAX_HTML_CHARS]
    if _depth_sum(html) > MAX_DEPTH_SUM:
        return _without_tags(html), ""
    tree = LexborHTMLParser(html)
    if tree.body is None:
        return "", ""
    for selector in _UNSEEN:
        _remove(tree, selector)
    _remove(tree, "[style]", lambda node: bool(_HIDDEN_STYLE.search(node.attributes.get("style") or "")))
    full = _text(tree.body)
    return full, _text(tree.body) if _remove_quotes(tree) else ""


def _remove_quotes(tree: LexborHTMLParser) -> bool:
    removed = False
    for selector in _QUOTES:
        if len(tree.css(selector)) <= MAX_QUOTES:
            removed |= _remove(tree, selector, _is_last)
    for selector in _QUOTE_STARTS:
        start = tree.css_first(selector)
        if start is not None:
            removed = True
            _cut_from(start)
    return removed


def _remove(tree: LexborHTMLParser, selector: str, wanted: Callable[[LexborNode], bool] | None = None) -> bool:
    removed = False
    # Children before their parents: a node inside a removed one must not be touched again.
    for node in reversed(tree.css(selector)):
        if node.tag not in ("body", "html") and (wanted is None or wanted(node)):
            node.decompose()
            removed = True
    return removed


def _is_last(node: LexborNode) -> bool:
    """Nothing but white space stands behind the quote: else somebody answers between the quotes."""
    return all(not (after.text(deep=True) or "").strip() for after in _after(node))


def _cut_from(start: LexborNode) -> None:
    for after in list(_after(start)):
        after.decompose()
    start.decompose()


def _after(node: LexborNode) -> Iterator[LexborNode]:
    """What follows in the document, as whole subtrees."""
    here: LexborNode | None = node
    while here is not None and here.tag != "body":
        following = here.next
        while following is not None:
            yield following
            following = following.next
        here = here.parent


def _text(body: LexborNode) -> str:
    out: list[str] = [""]
    preformatted = 0
    for node, opens in _walk(body):
        tag = node.tag or ""
        at_line_start = out[-1].endswith("\n")
        if node.is_text_node:
            words = node.text_content or ""
            words = words if preformatted else re.sub(r"\s+", " ", words)
            if not (words == " " and at_line_start):
                out.append(words)
        elif tag == "br":
            if opens:
                out.append("\n")
        elif tag == "p":
            out.append("\n\n")
        elif tag in _BLOCKS:
            if not at_line_start:
                out.append("\n")
            if tag == "li" and opens:
                out.append("- ")
            preformatted += (1 if opens else -1) if tag == "pre" else 0
        elif tag in ("td", "th"):
            out.append(" ")
    return _tidy("".join(out))


def _walk(body: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Every node below, once when it opens and, elements only, once when it closes; without recursion."""
    node = body.first_child
    depth = 1
    while node is not None:
        yield node, True
        child = node.first_child
        if child is not None:
            node, depth = child, depth + 1
            continue
        if node.is_element_node:
            yield node, False
        while node is not None and node.next is None:
            node, depth = node.parent, depth - 1
            if depth == 0 or node is None:
                return
            yield node, False
        node = node.next if node is not None else None


def _tidy(text: str) -> str:
    lines = (re.sub(r"[ \t\xa0\u200b\u200c\ufeff\u034f\xad]+", " ", line).strip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _depth_sum(html: str) -> int:
    depth = total = 0
    for match in _TAG.finditer(html):
        name = (match[2] or "").lower()
        if name and name not in _UNNESTED:
            depth = max(0, depth - 1) if match[1] else depth + 1
        total += depth
    return total


def _without_tags(html: str) -> str:
    out: list[str] = []
    hidden = ""
    end = 0
    for match in _TAG.finditer(html):
        if not hidden:
            out.append(html[end : match.start()])
        end = match.end()
        name = (match[2] or match[0]).lower()
        if hidden:
            hidden = "" if (name == "-->" if hidden == "<!--" else name == hidden and match[1]) else hidden
        elif name in ("script", "style", "head", "<!--") and not match[1]:
            hidden = name
        elif name == "br" or name == "p" or name in _BLOCKS:
            out.append("\n")
    if not hidden:
        out.append(html[end:])
    return _tidy(entities.unescape("".join(out)))
