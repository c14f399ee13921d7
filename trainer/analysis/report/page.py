"""The page around the figures: HTML in one piece, readable without its pictures, in light and dark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

FLAG = re.compile(r"--[a-z][a-z-]*")  # a browser would end a line behind each of its hyphens
MOST_NEXT_TO_NUMBERS = 20  # characters: an interval
STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #57606a; --page: #fff; --rule: #d0d7de; --one: #0550ae;
 --two: #9a3f00; --three: #116329; --bar: #3572b8; --soft: #a9c4e4 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #a3acb8; --page: #0d1117; --rule: #30363d;
 --one: #79c0ff; --two: #ffa657; --three: #7ee787; --bar: #58a6ff; --soft: #274b77 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 46rem;
 margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: 0 } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100%; font-size: .9rem } th, td { text-align: left;
 padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; overflow-wrap: break-word }
td.number,
th.number { text-align: right; font-variant-numeric: tabular-nums } .scroll { overflow-x: auto } p.dim,
figcaption { color: var(--dim); font-size: .9rem }
figure { margin: 1rem 0 } svg { width: 100%; height: auto } svg.narrow { display: none } summary { cursor: pointer }
@media (max-width: 36rem) { svg.wide { display: none } svg.narrow { display: block; max-width: 28rem } }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink) } svg text.axis { fill: var(--dim) }
svg text.over { paint-order: stroke; stroke: var(--page); stroke-width: 4px; stroke-linejoin: round }
.grid { stroke: var(--rule); stroke-width: 1 } path, line.one, line.two { fill: none; stroke-width: 2 }
.one { stroke: var(--one) } .two { stroke: var(--two); stroke-dasharray: 6 3 } .ideal { stroke: var(--dim);
 stroke-dasharray: 2 4 } .mark { fill: none; stroke: var(--two); stroke-width: 2 } .dot { fill: var(--one);
 fill-opacity: .45 } .bar, .fill-one { fill: var(--bar) } .outside { fill: var(--soft) } .fill-two { fill: var(--two) }
.fill-three { fill: var(--three) } .spread { stroke: var(--ink); stroke-width: 1.5 } .level { stroke: var(--two);
 stroke-width: 1.5; stroke-dasharray: 6 3 } .kept { white-space: nowrap }
"""


def page(title: str, lead: str, sections: Sequence[tuple[str, str]], style: str = "") -> str:
    """Return the document: title, a sentence, and sections of heading and HTML; `style` is added to the common one.

    Args:
        title: heading of the document.
        lead: sentence below it.
        sections: (heading, HTML) of each section.
        style: CSS in addition to the common one.
    """
    body = "\n".join(f"<section><h2>{escape(heading)}</h2>\n{content}</section>" for heading, content in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head>\n<body><main><h1>{escape(title)}</h1>"
        f'<p class="dim">{escape(lead)}</p>\n{body}\n</main></body></html>\n'
    )


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """Return a table; the first column names its row, numbers stand to the right.

    Args:
        head: headings of the columns.
        rows: cells of each row; the first names it.
        caption: caption; empty for none.
    """
    top = "".join(
        f'<th scope="col"{"" if place == 0 else _kind(rows, place)}>{escape(h)}</th>' for place, h in enumerate(head)
    )
    lines = "".join(
        f'<tr><th scope="row">{escape(str(row[0]))}</th>'
        + "".join(_cell(value, _kind(rows, place)) for place, value in enumerate(row[1:], 1))
        + "</tr>"
        for row in rows
    )
    words = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = f"{words}<thead><tr>{top}</tr></thead><tbody>{lines}</tbody>"
    return f'<div class="scroll" tabindex="0"><table>{body}</table></div>'


def facts(values: Mapping[str, Any]) -> str:
    """Return names and values, nested ones with their path."""
    return table(("setting", "value"), [(name, shown(value)) for name, value in flat(values)])


def flat(values: Mapping[str, Any], base: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of nested mappings by their path."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        found += flat(value, f"{base}{name}.") if isinstance(value, Mapping) and value else [(base + name, value)]
    return found


def folded(summary: str, content: str) -> str:
    """Return content that opens on demand, without a script."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def shown(value: Any) -> str:
    """Return a value as a person reads it."""
    if value is None or value in ("", [], {}, ()):
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(shown, value[:40])) + (f" and {len(value) - 40} more" if len(value) > 40 else "")
    return str(value)


def _kind(rows: Sequence[Sequence[Any]], place: int) -> str:
    return ' class="number"' if rows and isinstance(rows[0][place], (int, float)) else ""


def _cell(value: Any, kind: str) -> str:
    """Return a cell; short words in a column of numbers stand to the right as these do.

    Args:
        value: content.
        kind: the column's attribute; empty for one of words.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    words = f"{value:,}" if isinstance(value, int) and number else shown(value)
    kept = FLAG.sub(r'<span class="kept">\g<0></span>', escape(words))
    if number or (kind and len(words) <= MOST_NEXT_TO_NUMBERS):
        return f'<td class="number">{escape(words)}</td>'
    return f"<td>{kept}</td>"
