"""Consistency checks of a matrix whose files are each well-formed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rocmatrix.matrix.matrix import Cell, Matrix, Release
from rocmatrix.matrix.rule import Rule
from rocmatrix.matrix.statement import FIRST_HAND, UNOPENABLE

# Verdicts on a combination that rest on what an owner told this project alone. No other rule may be judged so.
REPORTED_TO_US = frozenset(
    {"gfx906-mi50-torch-2.4.1", "gfx906-mi50-torch-2.5.1", "gfx1100-torch-2.5.1-compile-and-fsdp"}
)

Mistake = tuple[tuple[str | int, ...], str]


def contradictions(matrix: Matrix) -> Iterator[Mistake]:
    """Yield (path, message) for cells that cannot be, and for recommendations that contradict themselves.

    Every reference of the matrix must lead somewhere: cells are resolved for it.
    """
    yield from _opposed(matrix)
    yield from _harmful_helps(matrix)
    yield from _unreported_defaults(matrix)
    yield from _unopenable_evidence(matrix)
    recommended: dict[str | None, str] = {}
    for index, cell in enumerate(matrix.cells):
        yield from ((("cells", index), message) for message in _impossible(cell))
        if cell.recommended and cell.architecture in recommended:
            first = recommended[cell.architecture]
            yield ("cells", index, "recommended"), f"{first} is the recommended cell of {cell.architecture} already"
        if cell.recommended:
            recommended.setdefault(cell.architecture, cell.name)


def _opposed(matrix: Matrix) -> Iterator[Mistake]:
    """Yield every rule that states `works` of a combination that another calls broken."""
    for index, rule in enumerate(matrix.rules):
        if rule.verdict != "works" or not rule.decides or rule.when.package is not None:
            continue
        for gfx in rule.when.architectures or matrix.architectures:
            for release in matrix.releases:
                if rule.when.matches(architecture=gfx, torch=release.torch, rocm=release.rocm):
                    yield from (
                        (
                            ("rules", index),
                            f"it states that {gfx} with {release.name} works; rule {other} breaks it",
                        )
                        for other in _broken_by(matrix, gfx, release)
                    )


def _broken_by(matrix: Matrix, gfx: str, release: Release) -> Iterator[str]:
    rules = matrix.rules_on(gfx, release)
    yield from (rule.id for rule in rules if rule.decides and rule.verdict == "broken")


def _harmful_helps(matrix: Matrix) -> Iterator[Mistake]:
    """Yield every override that is recorded as a help where a rule on the same override is `broken`."""
    for gfx, entry in matrix.architectures.items():
        for index, override in enumerate(entry.overrides):
            setting = f"HSA_OVERRIDE_GFX_VERSION={override.value}"
            against = [rule for rule in matrix.rules if rule.verdict == "broken" and setting in (rule.when.given or "")]
            for release in matrix.releases if override.effect == "helps" else ():
                if not override.when.matches(architecture=None, torch=release.torch, rocm=release.rocm):
                    continue
                for rule in against:
                    if rule.when.matches(architecture=gfx, torch=release.torch, rocm=release.rocm):
                        message = f"it is recorded as a help with {release.name}, and broken by rule {rule.id}"
                        yield ("architectures", gfx, "overrides", index), message


def _unreported_defaults(matrix: Matrix) -> Iterator[Mistake]:
    """Yield every recommended cell that neither AMD lists nor an owner reports, next to one that an owner reports."""
    working = {cell.architecture: cell.name for cell in matrix.cells if cell.verdict == "works"}
    for index, cell in enumerate(matrix.cells):
        backed = cell.verdict == "works" or cell.official
        if cell.recommended and not backed and cell.architecture in working:
            other = working[cell.architecture]
            yield ("cells", index, "recommended"), f"no source reports it, and {other} is reported to work"


def _unopenable_evidence(matrix: Matrix) -> Iterator[Mistake]:
    """Yield every verdict whose evidence no reader can open: an unnamed document is only ever the claimed side."""
    for path, rule in _every_rule(matrix):
        for source in () if rule.verdict == "untested" else rule.evidence.sources:
            if UNOPENABLE.search(source):
                yield (
                    path,
                    f"its verdict {rule.verdict} rests on '{source}', which no reader can open; quote it as a claim",
                )
            if FIRST_HAND.search(source) and rule.decides and rule.id not in REPORTED_TO_US:
                yield path, f"its verdict {rule.verdict} rests on '{source}'; only the rules of REPORTED_TO_US may"


def _every_rule(matrix: Matrix) -> Iterator[tuple[tuple[str | int, ...], Rule]]:
    yield from ((("rules", index), rule) for index, rule in enumerate(matrix.rules))
    for index, companion in enumerate(matrix.companions):
        yield from ((("companions", index, "rules", at), rule) for at, rule in enumerate(companion.rules))


def _impossible(cell: Cell) -> Iterator[str]:
    if cell.python not in cell.release.pythons:
        built = ", ".join(cell.release.pythons)
        yield f"its base brings Python {cell.python}, but {cell.release.name} was built for {built}"
    if cell.recommended and cell.broken_by:
        yield f"it is recommended, but rule {cell.broken_by[0].id} calls it broken"
    for name, times in Counter(variable.name for variable in cell.environment).items():
        if times > 1:
            yield f"{name} is set {times} times for it"
