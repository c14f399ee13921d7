"""Cards, links and NUMA nodes as a person would draw them: what joins what, how far and how fast. Pure.

Weights are the kernel's distances (15 an XGMI hop, 20 a PCIe hop); bandwidths are the kernel's figures, not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rocmatrix.host.hardware import Card, Hardware, Processor
from rocmatrix.host.link import Link

GIB = 1024**3
MOST_IN_TABLE = 16  # a row of 16 cards has 150 columns


@dataclass(frozen=True, kw_only=True)
class Place:
    """A NUMA node with the cards that hang on it; `processor` is None for cards whose node is not known."""

    processor: Processor | None
    cards: tuple[Card, ...]

    @property
    def summary(self) -> str:
        """The node in a few words."""
        if self.processor is None:
            return "no NUMA node reported"
        memory = f", {size(self.processor.memory_bytes)}" if self.processor.memory_bytes else ""
        return f"node {self.processor.node}: {self.processor.cores} cores{memory}"


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Everything to be drawn. `links` holds the best link from card to card, by their indices, and `hosts` the
    link from a card to its processor. `firsts` are the first partitions of the cards as they are plugged in."""

    places: tuple[Place, ...]
    links: dict[tuple[int, int], Link]
    hosts: dict[int, Link]
    reason: str | None
    hidden: int
    plugged: int
    firsts: tuple[int, ...]

    @property
    def cards(self) -> tuple[Card, ...]:
        """All cards, in the order of their indices."""
        return tuple(sorted((c for place in self.places for c in place.cards), key=lambda card: card.index))


def picture(machine: Hardware) -> Picture:
    """Return what is to be drawn of a machine."""
    numbers = {card.node: card.index for card in machine.cards}
    groups = machine.physical_cards
    links: dict[tuple[int, int], Link] = {}
    hosts: dict[int, Link] = {}
    for link in sorted(machine.links, key=_distance, reverse=True):  # the nearest comes last and stays
        if link.source in numbers and link.target in numbers and link.source != link.target:
            links[numbers[link.source], numbers[link.target]] = link
        elif link.source in numbers and link.direct:
            hosts[numbers[link.source]] = link
    return Picture(
        places=_places(machine, hosts),
        links=links,
        hosts=hosts,
        reason=machine.reason,
        hidden=machine.hidden_nodes,
        plugged=len(groups),
        firsts=tuple(group[0].index for group in groups),
    )


def _distance(link: Link) -> int:
    return link.weight if link.weight is not None else 1 << 32


def _places(machine: Hardware, hosts: dict[int, Link]) -> tuple[Place, ...]:
    homes: dict[int | None, list[Card]] = {processor.node: [] for processor in machine.processors}
    for card in machine.cards:
        link = hosts.get(card.index)
        # a card that is one node with its processor is at home there
        home = link.target if link else card.node if card.node in homes else None
        homes.setdefault(home if home in homes else None, []).append(card)
    known = {processor.node: processor for processor in machine.processors}
    return tuple(
        Place(processor=known.get(node) if node is not None else None, cards=tuple(cards))
        for node, cards in homes.items()
    )


def size(number: int) -> str:
    """Return bytes in readable units: "20 GiB", and "512 MiB" below one."""
    return f"{number / GIB:.0f} GiB" if number >= GIB else f"{number / 1024**2:.0f} MiB"


def headline(drawn: Picture) -> str:
    """Return what there is in one line."""
    if not drawn.cards:
        return f"no card: {drawn.reason}"
    nodes = sum(place.processor is not None for place in drawn.places)
    shown = f"{len(drawn.cards)} partitions of {drawn.plugged} card(s)"
    whole = f"{len(drawn.cards)} card(s)"
    return f"{shown if drawn.plugged < len(drawn.cards) else whole}, {nodes} NUMA node(s)"


def name(card: Card) -> str:
    """Return a card in a few words: "gfx1100 20 GiB 0000:03:00.0"."""
    memory = f" {size(card.memory_bytes)}" if card.memory_bytes else ""
    kind = " (integrated)" if card.integrated else ""
    product = f" {card.adapter.product}" if card.adapter and card.adapter.product else ""
    part = f" partition {card.partition}" if card.partition else ""
    return f"{card.gfx or 'not named'}{kind}{product}{memory} {card.pci_address or ''}{part}".rstrip()


def text(drawn: Picture) -> str:
    """Return the picture as text: places with their cards, then a table of the ways between cards."""
    lines = [headline(drawn)] if drawn.plugged < len(drawn.cards) else []
    lines += [line for place in drawn.places for line in _place_lines(place, drawn)]
    if not drawn.cards:
        lines.append(f"no card: {drawn.reason}")
    if drawn.hidden:
        lines.append(f"{drawn.hidden} card(s) more are hidden by the container")
    if len(drawn.cards) > 1:
        lines += ["", table_head(drawn), *_table(drawn)]
        if any(not link.direct for link in drawn.links.values()):
            lines.append("~ through another node")
    return "\n".join(lines)


def _place_lines(place: Place, drawn: Picture) -> list[str]:
    lines = [place.summary]
    for card in place.cards:
        slot = f"; slot {card.adapter.link.summary}" if card.adapter and card.adapter.link.width else ""
        host = f"; {drawn.hosts[card.index].summary}" if card.index in drawn.hosts else ""
        hive = f"; hive {card.hive_id:x}" if card.hive_id else ""
        lines.append(f"  card {card.index}: {name(card)}{host}{slot}{hive}")
    return lines


def in_table(drawn: Picture) -> tuple[Card, ...]:
    """Return the cards that the table of ways has room for: all, else one partition a card, else the first ones."""
    cards = drawn.cards
    if len(cards) > MOST_IN_TABLE:
        firsts = set(drawn.firsts)
        cards = tuple(card for card in cards if card.index in firsts)
    return cards[:MOST_IN_TABLE]


def table_head(drawn: Picture) -> str:
    """Return the line above the table of ways, with what is left out of it."""
    head = "from card (row) to card (column): kind and the kernel's distance"
    shown = len(in_table(drawn))
    if shown == len(drawn.cards):
        return head
    which = "the first partition of each card" if shown == drawn.plugged else "the first"
    return f"{head}; {shown} of {len(drawn.cards)}, {which}"


def _table(drawn: Picture) -> list[str]:
    cards = in_table(drawn)
    rows = [["", *(str(card.index) for card in cards)]]
    rows += [[str(one.index), *(mark(drawn, one, two) for two in cards)] for one in cards]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def mark(drawn: Picture, one: Card, two: Card) -> str:
    """Return the way between two cards in a few letters: "XGMI 15", "~PCIe 72", "none"."""
    if one.index == two.index:
        return "-"
    link = drawn.links.get((one.index, two.index))
    if link is None:
        return "none"
    return f"{'' if link.direct else '~'}{link.kind}{f' {link.weight}' if link.weight is not None else ''}"


def hives(cards: Sequence[Card]) -> tuple[int, ...]:
    """Return the ids of the XGMI hives, in the order of their first card."""
    return tuple(dict.fromkeys(card.hive_id for card in cards if card.hive_id))
