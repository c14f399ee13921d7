"""The grid as one page that needs nothing else: filters, and the explanation of each square."""

from __future__ import annotations

import json
from typing import Any

from rocmatrix.matrix.matrix import Cell, Matrix, Release
from rocmatrix.matrix.resolver import text as terminal
from rocmatrix.matrix.resolver.explanation import Section, Subject, sections
from rocmatrix.matrix.resolver.grid import Grid, Row, Square
from rocmatrix.runtime import templates

TEMPLATE = "matrix.html.j2"


def page(matrix: Matrix, grid: Grid, *, today: str) -> str:
    """Render the page; explanations are those of `today`, a date such as 2026-11-21.

    Args:
        today: date that statements expire by, such as 2026-11-21.
    """
    cards = [_card(row) for row in grid.rows]
    return (
        templates.environment(html=True)
        .get_template(TEMPLATE)
        .render(
            grid=grid,
            today=today,
            data={**explanations(matrix, grid, today=today), "cards": {each["architecture"]: each for each in cards}},
            cards=cards,
            symbols=terminal.SYMBOLS,
            badges=terminal.RULE_SYMBOLS,
            marks=terminal.CELLS,
            symbol=terminal.symbol,
        )
    )


def explanations(matrix: Matrix, grid: Grid, *, today: str) -> dict[str, Any]:
    """Return every explanation for the page's script. A point is stored once, and squares name it by its number.

    Args:
        today: date that statements expire by, such as 2026-11-21.
    """
    points = Numbered()
    titles: dict[str, str] = {}
    squares: dict[str, Any] = {}
    for row in grid.rows:
        for square, release in zip(row.squares, grid.releases, strict=True):
            reported = list(sections(matrix, _subject(square, release), today=today))
            titles |= {section.name: section.title for section in reported}
            squares[f"{square.architecture}/{square.release}"] = _described(square, reported, points)
    cells = {cell.name: _cell(cell) for cell in matrix.cells if cell.architecture}
    # A list of pairs: the template's JSON sorts the keys of a mapping, and sections have an order.
    return {"sections": list(titles.items()), "cells": cells, "squares": squares, "points": points.described}


def _card(row: Row) -> dict[str, Any]:
    """Return what an owner of a card types, and what is known of that square.

    It is the recommended cell's; without one the newest release that no rule breaks; else the reason for none.
    """
    judged = [square for square in row.squares if square.verdict not in ("broken", "unavailable")]
    best = next((square for square in row.squares if square.recommended), next(iter(judged), row.squares[0]))
    usable = best in judged
    command = "train" if best.recommended else "explain"
    return {
        "architecture": row.architecture,
        "names": list(row.names),
        "release": best.release,
        "verdict": best.verdict,
        "because": best.because,
        "listed": list(best.listed),
        "others": best.others,
        "command": f"./invokew {command if usable else 'explain'} --gpu {row.architecture}",
    }


class Numbered:
    """Points as programs read them, each kept once under the number of its first appearance."""

    def __init__(self) -> None:
        self.described: list[dict[str, Any]] = []
        self._number: dict[str, int] = {}

    def number(self, description: dict[str, Any]) -> int:
        """Return the number of a point, a new one where it was not seen before."""
        number = self._number.setdefault(json.dumps(description), len(self.described))
        if number == len(self.described):
            self.described.append(description)
        return number


def _subject(square: Square, release: Release) -> Subject:
    return Subject(architecture=square.architecture, torch=release.torch, rocm=release.rocm, release=release)


def _described(square: Square, reported: list[Section], points: Numbered) -> dict[str, Any]:
    numbers = {section.name: [points.number(point.described()) for point in section.points] for section in reported}
    return {
        "verdict": square.verdict,
        "because": square.because,
        "others": square.others,
        "listed": list(square.listed),
        "cell": square.cell,
        "points": numbers,
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "why": cell.why,
        "recommended": cell.recommended,
        "unlocked_because": cell.unlocked_because,
        "evidence": cell.evidence.summary,
        "command": f"./invokew build --cell {cell.name}",
    }
