"""The topology as an SVG: a box for each NUMA node, its cards inside, arcs for XGMI, a table for every pair.

Plain shapes and text, no script and no font of its own, readable in light and dark.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from xml.sax.saxutils import escape

from rocmatrix.host.hardware import Card
from rocmatrix.host.topology import Picture, Place, headline, hives, in_table, mark, size, table_head

CARD_WIDTH, CARD_HEIGHT, GAP, MARGIN, HEAD = 216, 92, 14, 20, 30
ROW = 22
ARC_SPACE = 84
COLUMNS = 4
STYLE = """
 text { font: 13px system-ui, sans-serif; fill: #1b1f24 }
 .title { font-weight: 600; font-size: 15px }
 .small { font-size: 11px; fill: #57606a }
 .page { fill: #ffffff }
 .place { fill: #f6f8fa; stroke: #8c959f }
 .card { fill: #ffffff; stroke: #57606a }
 .integrated, .cell-self { fill: #eaeef2 }
 .xgmi { stroke: #8250df; fill: none; stroke-width: 1.6 }
 .cell-xgmi { fill: #e8dcfb }
 .cell-pcie { fill: #fbeecb }
 .cell-none { fill: #ffd7d5 }
 @media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .small { fill: #9198a1 }
  .page, .card { fill: #0d1117 }
  .place { fill: #161b22 }
  .integrated, .cell-self { fill: #21262d }
  .cell-xgmi { fill: #3b2a5e }
  .cell-pcie { fill: #4a3a10 }
  .cell-none { fill: #5d1f1c }
 }
"""


def svg(drawn: Picture) -> str:
    """Return the picture as one SVG document."""
    body: list[str] = []
    centers: dict[int, tuple[float, float]] = {}
    # arcs over several rows of cards, or between boxes, would be a tangle; the table has every pair
    rows = all(len(place.cards) <= COLUMNS for place in drawn.places)
    arcs = rows and any(link.xgmi for link in drawn.links.values())
    top, width = float(MARGIN + 2 * HEAD), 0.0
    for place in drawn.places:
        top += ARC_SPACE if arcs and place.cards else 0
        size = _place(place, drawn, top, body, centers)
        top += size[1] + GAP
        width = max(width, size[0])
    if arcs:
        body += _arcs(drawn, centers)
        body.append(_text(MARGIN, MARGIN + 30, "arcs: XGMI between cards of one node", "small"))
    table_width, table_height = _table(drawn, top + GAP, body)
    width = max(width, table_width, 420) + 2 * MARGIN
    height = top + table_height + 2 * MARGIN
    title = headline(drawn)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img"><title>{escape(title)}</title><style>{STYLE}</style>'
        f'<rect class="page" width="100%" height="100%"/>'
    )
    return "\n".join([head, _text(MARGIN, MARGIN + 10, title, "title"), *body, "</svg>", ""])


def _place(
    place: Place, drawn: Picture, top: float, body: list[str], centers: dict[int, tuple[float, float]]
) -> tuple[float, float]:
    """Draw a NUMA node and its cards; return its width and height."""
    columns = min(COLUMNS, max(1, len(place.cards)))
    rows = -(-len(place.cards) // columns)
    width = max(columns * (CARD_WIDTH + GAP) + GAP, 260)
    height = GAP + HEAD + rows * (CARD_HEIGHT + GAP) - GAP // 2
    body.append(f'<rect class="place" x="{MARGIN}" y="{top:.0f}" width="{width}" height="{height}" rx="8"/>')
    body.append(_text(MARGIN + GAP, top + height - 11, place.summary))
    for position, card in enumerate(place.cards):
        x = MARGIN + GAP + position % columns * (CARD_WIDTH + GAP)
        y = top + GAP + position // columns * (CARD_HEIGHT + GAP)
        centers[card.index] = (x + CARD_WIDTH / 2, y)
        body += _card(card, drawn, x, y)
    return width, height


def _card(card: Card, drawn: Picture, x: float, y: float) -> Iterator[str]:
    kind = "card integrated" if card.integrated else "card"
    yield f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{CARD_WIDTH}" height="{CARD_HEIGHT}" rx="6"/>'
    memory = f", {size(card.memory_bytes)}" if card.memory_bytes else ""
    host = drawn.hosts.get(card.index)
    slot = card.adapter.link.summary if card.adapter and card.adapter.link.width else ""
    hive = f"hive {hives(drawn.cards).index(card.hive_id) + 1}" if card.hive_id else ""
    lines = [
        f"card {card.index}: {card.gfx or 'not named'}{memory}",
        f"{card.pci_address or 'no address'}{' partition ' + str(card.partition) if card.partition else ''}",
        f"to the processor: {host.kind if host else 'not reported'}"
        + (f", {host.most_bandwidth / 1000:.0f} GB/s" if host and host.most_bandwidth else ""),
        f"slot {slot}" if slot else "part of the processor" if card.integrated else "slot not reported",
        hive,
    ]
    for number, line in enumerate(line for line in lines if line):
        yield _text(x + 8, y + 17 + 16 * number, line, "" if number == 0 else "small")


def _arcs(drawn: Picture, centers: dict[int, tuple[float, float]]) -> Iterator[str]:
    """Draw XGMI between the cards of a node as arcs above them; everything else stands in the table alone."""
    for place in drawn.places:
        for one, two in combinations(place.cards, 2):
            link = drawn.links.get((one.index, two.index))
            if link is not None and link.xgmi:
                yield _arc(
                    centers[one.index], centers[two.index], f"card {one.index} to card {two.index}: {link.summary}"
                )


def _arc(start: tuple[float, float], end: tuple[float, float], label: str) -> str:
    (x1, y1), (x2, y2) = start, end
    lift = min(y1, y2) - min(ARC_SPACE - GAP, 26 + abs(x2 - x1) / 8)
    path = f"M{x1:.0f},{y1:.0f} C{x1:.0f},{lift:.0f} {x2:.0f},{lift:.0f} {x2:.0f},{y2:.0f}"
    return f'<path class="xgmi" d="{path}"><title>{escape(label)}</title></path>'


def _table(drawn: Picture, top: float, body: list[str]) -> tuple[float, float]:
    """Draw the way of every pair of cards; return the table's width and height."""
    cards = in_table(drawn)
    if len(cards) < 2:
        return 0, 0
    side = max(7 * max(len(mark(drawn, a, b)) for a in cards for b in cards) + 10, 34)
    body.append(_text(MARGIN, top + 12, table_head(drawn), "small"))
    top += ROW
    for row, one in enumerate(cards):
        y = top + (row + 1) * ROW
        body.append(_text(MARGIN + 4, y + 15, str(one.index)))
        body.append(_text(MARGIN + 34 + row * side + 6, top + 15, str(one.index)))
        for column, two in enumerate(cards):
            x = MARGIN + 34 + column * side
            body.append(
                f'<rect class="{_shade(drawn, one, two)}" x="{x}" y="{y}" width="{side - 2}" height="{ROW - 2}"/>'
            )
            body.append(_text(x + 6, y + 15, mark(drawn, one, two), "small"))
    return 34 + len(cards) * side, (len(cards) + 2) * ROW + GAP


def _shade(drawn: Picture, one: Card, two: Card) -> str:
    if one.index == two.index:
        return "cell-self"
    link = drawn.links.get((one.index, two.index))
    return "cell-none" if link is None else "cell-xgmi" if link.xgmi else "cell-pcie"


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{named}>{escape(text)}</text>'
