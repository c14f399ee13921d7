"""Rules on added packages by name, whether --with or a file names them."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from packaging.utils import canonicalize_name

from rocmatrix.images.added import conflicts, requirements_file
from rocmatrix.images.added.requirements_file import Line
from rocmatrix.matrix.companion import Companion
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.matrix.rule import Rule
from rocmatrix.runtime.errors import RocmatrixError, suggestion


def choose(matrix: Matrix, cell: Cell, packages: Iterable[str]) -> list[Companion]:
    """Return the companions of these names. Raises RM010 for an unknown one, RM013 for one
    broken on the cell, RM222 for one that no index serves as a wheel for ROCm.

    Args:
        packages: names of the companions.
    """
    chosen = []
    for name in dict.fromkeys(canonicalize_name(package) for package in packages):
        if requirements_file.is_word(name):
            continue
        if (companion := known(matrix, name)) is None:
            hint = suggestion(name, [each.package for each in matrix.companions if "*" not in each.package])
            advice = f"{hint} Any other package: {requirements_file.FLAG} FILE".strip()
            raise RocmatrixError("RM010", what=f"there is no companion {name!r}", where="--with", next=advice)
        _judge(matrix, companion, cell, name=name)
        chosen.append(companion)
    return chosen


def _judge(matrix: Matrix, companion: Companion, cell: Cell, *, name: str) -> None:
    """Raise RM013 for a package that is broken on the cell, RM222 for one without a wheel for ROCm.

    Args:
        name: the package as it was asked for.
    """
    if broken := broken_by(companion, cell):
        raise refusal(matrix, companion, cell, broken[0], name=name)
    if companion.no_wheel:
        raise _no_wheel(companion, cell)


def broken_by(companion: Companion, cell: Cell) -> list[Rule]:
    """Return the rules that call a package broken on a cell."""
    release = cell.release
    rules = companion.rules_on(architecture=cell.architecture, torch=release.torch, rocm=release.rocm)
    return [rule for rule in rules if rule.decides and rule.verdict == "broken"]


def refusal(matrix: Matrix, companion: Companion, cell: Cell, rule: Rule, *, name: str) -> RocmatrixError:
    """Return the error for a package that a rule calls broken on a cell.

    Args:
        rule: the rule.
        name: the package as it was asked for, and by what.
    """
    same_card = (other for other in matrix.cells if other.architecture == cell.architecture)
    fitting = [other.name for other in same_card if not broken_by(companion, other) and not other.broken_by]
    advice = f"leave it out, or take --cell {fitting[0]}" if fitting else "leave it out: no cell of the card has it"
    return RocmatrixError(
        "RM013",
        what=f"{name} on {cell.name}",
        where=f"rule {rule.id} in matrix/companions.yaml",
        why=f"{rule.summary}\n{rule.evidence.summary}",
        next=advice,
    )


def _no_wheel(companion: Companion, cell: Cell) -> RocmatrixError:
    release = cell.release
    rules = companion.rules_on(architecture=cell.architecture, torch=release.torch, rocm=release.rocm)
    verdict = companion.verdict(architecture=cell.architecture, torch=release.torch, rocm=release.rocm)
    reasons = [f"{rule.verdict}: {rule.summary}\n{rule.evidence.summary}" for rule in rules if rule.decides]
    return RocmatrixError(
        "RM222",
        what=f"{companion.package} on {cell.name}, where it is {verdict} once built",
        where="matrix/companions.yaml",
        why="\n".join(reasons) or "no rule covers it on this architecture",
        next=str(companion.no_wheel),
    )


def lines_of(matrix: Matrix, cell: Cell, root: Path) -> tuple[Line, ...]:
    """Return the lines of the requirements files that a cell's name stands for, as far as they apply to its image.

    Raises RM013 and RM222 as `choose`, RM017 where the checkout does not have the lines, RM018 where they ask for
    another version of what the cell holds.

    Args:
        root: folder of the checkout.
    """
    words = [word for word in cell.companions if requirements_file.is_word(word)]
    lines = conflicts.applying((line for word in words for line in requirements_file.kept(word, root)), cell)
    conflicts.refuse_replacements(lines, matrix, cell)
    for name in dict.fromkeys(line.name for line in lines if not line.only_bounds):
        if (companion := known(matrix, name)) is not None:
            _judge(matrix, companion, cell, name=name)
    return lines


def canonical(package: str) -> str:
    """Return a companion's name as an index spells it; a `*` in it stays."""
    return "*".join(canonicalize_name(part) if part.strip("-") == part else part for part in package.split("*"))


def known(matrix: Matrix, name: str) -> Companion | None:
    """Return the companion of a canonical name; one written with a `*` stands for a family of names."""
    return next((each for each in matrix.companions if fnmatchcase(name, canonical(each.package))), None)
