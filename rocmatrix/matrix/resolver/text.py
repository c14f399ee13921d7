"""Explanations and the grid as a terminal shows them: rich text that is as clear without colour."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.text import Text

    from rocmatrix.matrix.resolver.explanation import Explanation, Point, Section
    from rocmatrix.matrix.resolver.grid import Grid, Row, Square
    from rocmatrix.matrix.resolver.resolve import Choice
    from rocmatrix.runtime.errors import RocmatrixError

PROSE_WIDTH = 110
GRID_WIDTH = 160
# Headlines, the strongest first; a rule of its own may also have `works`.
SYMBOLS: dict[str, str] = {
    "measured": "◆",
    "supported": "✓",
    "reported": "◇",
    "expected": "·",
    "untested": "?",
    "degraded": "~",
    "broken": "✗",
    "unavailable": "∅",
}
NOTE = "note"  # the word for a rule that refutes a claim and judges nothing
RULE_SYMBOLS = SYMBOLS | {"works": "✓", "untested": "·"}
STYLES: dict[str, str] = {
    "measured": "bold green",
    "supported": "bold green",
    "works": "bold green",
    "reported": "green",
    "expected": "cyan",
    "untested": "dim",
    "degraded": "yellow",
    "broken": "red",
    "unavailable": "red",
}
CELLS = {"★": "recommended cell", "●": "cell", "○": "cell, unlocked"}


def explanation(explained: Explanation) -> Group:
    """Return the whole explanation: verdict, answer, then each section that is not empty."""
    from rich.console import Group
    from rich.text import Text

    verdict = explained.judged.verdict
    judged = (f"{SYMBOLS[verdict]} {verdict}", STYLES[verdict])
    head = Text.assemble((explained.subject.summary, "bold"), ": ", judged, _restricted(explained))
    parts: list[RenderableType] = [head, _item("", explained.judged.because)]
    if explained.cards:
        parts.append(_item("", f"cards: {', '.join(explained.cards)}"))
    if explained.refusal is not None:
        parts += _refusal(explained.refusal)
    if explained.choice is not None:
        parts += _choice(explained.choice)
    parts += _chosen(explained)
    for section in explained.sections:
        parts += _section(section)
    if explained.unrecorded:
        parts += [Text(""), Text(f"Nothing is recorded here of {', '.join(explained.unrecorded)}.")]
    return Group(*parts)


def _restricted(explained: Explanation) -> str:
    judged = explained.judged
    return f" on {', '.join(judged.cards)}; {judged.others} on its other cards" if judged.others else ""


def _chosen(explained: Explanation) -> Iterator[RenderableType]:
    from rich.text import Text

    if explained.chosen:
        yield Text("\nChosen for you", style="bold underline")
    for axis in explained.chosen:
        yield _item("-", Text.assemble((f"{axis.axis} {axis.value}", "bold"), f": {axis.why}"))


def _refusal(error: RocmatrixError) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(f"\n{error.code} {error.title}", style="red")
    for text in (error.what, error.where, error.why):
        if text:
            yield _item("", text)
    for line in error.next.splitlines():
        yield _item("→", line)


def _choice(choice: Choice) -> Iterator[RenderableType]:
    from rich.text import Text

    cell = choice.cell
    if choice.unserved:
        yield Text(f"\nNO CARD IS USED: {choice.unserved}", style="bold yellow")
    yield Text.assemble("\ncell ", (cell.name, "bold"), f" (unlocked: {cell.unlocked_because})" * _unlocked(choice))
    yield _item("", choice.why)
    yield _item("", Text(cell.evidence.summary, style="dim"))
    for other in choice.passed_over:
        yield _item("", f"passed over {other.cell}: {other.why}")


def _unlocked(choice: Choice) -> bool:
    return choice.cell.unlocked_because is not None


def _section(section: Section) -> Iterator[RenderableType]:
    from rich.text import Text

    if section.points:
        yield Text(f"\n{section.title}", style="bold underline")
    for point in section.points:
        yield _item(*_point(point))


def _point(point: Point) -> tuple[str | Text, Text]:
    from rich.text import Text

    verdict = f"{NOTE if point.verdict == 'untested' else point.verdict}: " if point.verdict else ""
    given = f"where {point.given}: " if point.given else ""
    text = Text.assemble((point.about, "bold"), ": ", verdict, given, point.says, "\n")
    if point.claim is not None:
        outcome = "this stands" if point.claim.stands else "refuted"
        text.append(f"Reported: {point.claim.says} ({outcome}; {point.claim.evidence.summary})\n")
    text.append(point.evidence.summary, style="dim")
    if point.expired:
        text.append(f"; EXPIRED {point.expires}, look at it again", style="bold red")
    return Text(RULE_SYMBOLS[point.verdict], style=STYLES[point.verdict]) if point.verdict else "-", text


def _item(mark: str | Text, text: str | Text) -> RenderableType:
    """Return text that hangs next to its mark, however often it is wrapped."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=3, justify="right")
    grid.add_column(overflow="fold")  # rich would shorten a source that is longer than the line
    grid.add_row(mark, Text(text) if isinstance(text, str) else text)
    return grid


def grid(whole: Grid, *, width: int = GRID_WIDTH, here: Collection[str] = (), unusable: str | None = None) -> Group:
    """Return a summary and the legend, then a line for each architecture, a column for each ROCm, in it a symbol for
    each torch.

    The newest stands first. Where not all columns fit, the older ones follow as tables of their own.

    Args:
        width: columns of the terminal.
        here: architectures of this machine, whose lines come first.
        unusable: what card of this machine serves no run, and why; None where there is none.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = sorted(reversed(whole.rows), key=lambda row: row.architecture not in here)  # noqa: C414
    parts: list[RenderableType] = [*_summary(whole, here, unusable), *_legend(whole)]
    for versions in _blocks(whole, width):
        table = Table("", *versions, box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        for column in table.columns:
            column.no_wrap = True
        for row in rows:
            table.add_row(row.architecture, *_by_rocm(whole, row, versions))
        parts += [Text(""), table]
    return Group(*parts)


def _blocks(whole: Grid, width: int) -> list[list[str]]:
    """Part the ROCm versions into tables that fit."""
    names = max(len(row.architecture) for row in whole.rows) + 1
    blocks: list[list[str]] = [[]]
    left = width - names
    for version, releases in whole.by_rocm.items():
        needed = max(2 * len(releases), len(version)) + 1
        if needed > left and blocks[-1]:
            blocks.append([])
            left = width - names
        blocks[-1].append(version)
        left -= needed
    return blocks


def _by_rocm(whole: Grid, row: Row, versions: Iterable[str]) -> Iterator[Text]:
    from rich.text import Text

    for version in versions:
        squares = (s for s, release in zip(row.squares, whole.releases, strict=True) if release.rocm == version)
        yield Text.assemble(*((symbol(square), STYLES[square.verdict]) for square in squares))


def symbol(square: Square) -> str:
    """Return two characters: the verdict's, and the cell's or a space where there is none."""
    if square.cell is None:
        return f"{SYMBOLS[square.verdict]} "
    return SYMBOLS[square.verdict] + ("★" if square.recommended else "●" if square.locked else "○")


def _summary(whole: Grid, here: Collection[str], unusable: str | None) -> Iterator[Text]:
    """Yield how much there is, and the recommended cell of each architecture of this machine."""
    from rich.text import Text

    best = {row.architecture: square.cell for row in whole.rows for square in row.squares if square.recommended}
    yield Text(
        f"{len(whole.rows)} architectures with {len(whole.releases)} releases; a cell is recommended for {len(best)}"
    )
    for gfx in here:
        yield Text.assemble(f"this machine has {gfx}: ", (best.get(gfx) or "no cell is recommended", "bold"))
    if unusable:
        yield Text(unusable)
    elif not here:
        yield Text("this machine has no AMD GPU; `explain --gpu NAME` judges one card")
    yield Text("")


def _legend(whole: Grid) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    meanings = [*((SYMBOLS[verdict], verdict) for verdict in SYMBOLS), *CELLS.items()]
    yield Text("   ".join(f"{mark}\u00a0{meaning}" for mark, meaning in meanings))  # no line ends between the two
    yield Text("The torch versions of each ROCm, from left to right:")
    listed = Table.grid(padding=(0, 1, 0, 0))
    listed.add_column(min_width=8)
    listed.add_column(overflow="fold")
    for version, releases in whole.by_rocm.items():
        listed.add_row(f"  {version}", " ".join(release.torch for release in releases), style="dim")
    yield listed
