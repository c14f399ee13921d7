"""The rules on environment variables, applied. Pure: a subject in, findings out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rocmatrix.doctor.environment.lint_input import Assignment, Fix, Subject
from rocmatrix.doctor.environment.packages.releases import of_run
from rocmatrix.doctor.environment.rules import EnvironmentRule, Kind, Severity
from rocmatrix.matrix import gfx
from rocmatrix.matrix.statement import Selector, within

_LAUNCHERS = re.compile(r"\b(?:torchrun|torch\.distributed|accelerate|deepspeed|mpirun|mpiexec|srun)\b")
ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, kw_only=True)
class LintFinding:
    """One finding on a variable or command. `condition` names what was not known, and made it a note."""

    rule: str
    subject: str
    where: str
    what: str
    kind: Kind
    severity: Severity
    truth: str
    instead: str
    source: str
    condition: str | None = None
    fix: Fix | None = None

    def described(self) -> dict[str, str | None]:
        """Return it as plain data."""
        return {name: value for name, value in vars(self).items() if name != "fix"}


def lint(subjects: Iterable[Subject], rules: Iterable[EnvironmentRule]) -> tuple[LintFinding, ...]:
    """Return the findings of the rules on `subjects`, errors first, in the order of files otherwise.

    A variable that a later stage inherits is reported once, where it was set.
    """
    known = tuple(rules)
    found: dict[tuple[str, str, str], LintFinding] = {}
    for subject in subjects:
        for finding in _of(of_run(subject), known):
            found.setdefault((finding.rule, finding.where, finding.what), finding)
    return in_order(_without_contradiction(found.values()))


def _without_contradiction(findings: Iterable[LintFinding]) -> Iterator[LintFinding]:
    """Yield findings, those that hold on different versions or cards of one unknown run as one that lists them."""
    alike: dict[tuple[str, str], list[LintFinding]] = {}
    for finding in findings:
        if finding.condition is None:
            yield finding
        else:
            alike.setdefault((finding.where, finding.what), []).append(finding)
    for rows in alike.values():
        yield rows[0] if len(rows) == 1 else _on_condition(rows)


def _on_condition(rows: list[LintFinding]) -> LintFinding:
    return replace(
        rows[0],
        truth="; ".join(f"{row.condition}: {row.truth}" for row in rows),
        instead="name the cell or the card (--cell) to see which holds; "
        + "; ".join(dict.fromkeys(row.instead for row in rows)),
        condition="one of them holds, depending on the versions and the card",
    )


def in_order(findings: Iterable[LintFinding]) -> tuple[LintFinding, ...]:
    """Return findings with errors first."""
    return tuple(sorted(findings, key=lambda finding: ORDER[finding.severity]))


def _of(subject: Subject, rules: tuple[EnvironmentRule, ...]) -> Iterator[LintFinding]:
    for rule in rules:
        if rule.command is not None and _holds(rule.when, subject) is not False:
            for command in subject.commands:
                if (match := re.search(rule.command, command.text)) is not None:
                    yield _finding(rule, subject, where=command.where, what=match[0])
        for variable in subject.variables:
            if rule.names_it(variable.name) and _applies(rule, variable, subject):
                what = f"{variable.name}={variable.value}"
                found = _finding(rule, subject, where=variable.where, what=what)
                right = rule.corrected(variable.name)
                yield replace(found, instead=" or ".join(right)) if right else found


def _applies(rule: EnvironmentRule, variable: Assignment, subject: Subject) -> bool:
    """Return whether the rule covers this value with these others; whether it holds for the run is checked later."""
    others = {other.name: other.value for other in subject.variables if other.name != variable.name}
    own = rule.known and any(re.search(rf"\$\{{?{variable.name}\b", value) for value in others.values())
    if own or not _covers(rule, variable.value):  # a name of the file's own, which another variable is made of
        return False
    if (rule.given and not any(name in others for name in rule.given)) or any(name in others for name in rule.absent):
        return False
    return _passes(rule, variable, subject, others) and _holds(rule.when, subject) is not False


def _covers(rule: EnvironmentRule, value: str) -> bool:
    """Return whether a rule is about a value; what a variable in it will be is not known here."""
    if "$" in value:
        return rule.value is None and rule.test in (None, "differ", "never-compiled", "both-set")
    return rule.value is None or re.search(rule.value, value) is not None


def _passes(rule: EnvironmentRule, variable: Assignment, subject: Subject, others: Mapping[str, str]) -> bool:
    """Return whether the rule's own test, if it has one, holds for this value."""
    if rule.test in (None, "never-compiled"):
        return rule.test is None or not subject.compiles
    if rule.test == "single-process":
        return not any(_LAUNCHERS.search(command.text) for command in subject.commands)
    if rule.test == "override-not-compiled":
        return _not_among(variable.value, next(others[name] for name in rule.given if name in others))
    given = [others[name] for name in rule.given if name in others]
    if rule.test == "differ":
        return {*given} - {variable.value} != set()
    if rule.test.startswith("both-set"):
        return _both_set(given, variable.value, alike=rule.test == "both-set-alike")
    return _overrides(rule.test, variable.value, subject)


def _both_set(given: list[str], kept: str, *, alike: bool) -> bool:
    """Return whether cards are listed twice, so that the second list fits what the first leaves, or does not."""
    fits = all(_counts_from_zero(listed, kept) for listed in given if listed)
    return bool(kept and any(given)) and fits == alike  # empty lists hide all cards, whichever layer reads them


def _counts_from_zero(listed: str, kept: str) -> bool:
    """Return whether a list of cards names only numbers that a list which was applied before it leaves."""
    numbers = listed.replace(" ", "").split(",")
    left = len(kept.split(",")) if re.fullmatch(r"[\w,-]+", kept) else 0  # of a variable none is known
    return all(number.isdecimal() and int(number) < left for number in numbers)


def _overrides(test: str, value: str, subject: Subject) -> bool:
    """Compare an override with the cards of the run. Without a known card nothing is reported."""
    try:
        named = gfx.from_isa_version(value)
    except ValueError:
        return False
    if test == "override-any":
        return not subject.architectures
    if test == "override-native":
        return named in subject.architectures
    return bool(subject.architectures) and all(not _same_family(named, card) for card in subject.architectures)


def _not_among(override: str, targets: str) -> bool:
    """Return whether an override names none of the targets that are compiled for; what cannot be known is none."""
    try:
        named = gfx.from_isa_version(override)
    except ValueError:
        return False
    listed = [target.partition(":")[0] for target in re.split(r"[;,\s]+", targets) if target]
    exact = bool(listed) and all(re.fullmatch(r"gfx\d{2,3}[0-9a-f]", target) for target in listed)
    return exact and named not in listed


def _same_family(one: str, other: str) -> bool:
    """Return whether two names differ in their stepping alone: gfx1031 and gfx1030 do, gfx906 and gfx1030 do not."""
    return one[:-1] == other[:-1]


def _holds(when: Selector, subject: Subject) -> bool | None:
    """Return whether a selector fits the run; None where too little of the run is known."""
    answers = [
        _architectures(when, subject),
        _version(subject.torch, when.torch),
        _version(subject.rocm, when.rocm),
    ]
    if False in answers:
        return False
    return None if None in answers else True


def _architectures(when: Selector, subject: Subject) -> bool | None:
    if when.architectures is None:
        return True
    if not subject.architectures:
        return None
    return bool(set(when.architectures) & set(subject.architectures))


def _version(version: str | None, bounds: str | None) -> bool | None:
    if bounds is None:
        return True
    return None if version is None else within(version, bounds)


def _finding(rule: EnvironmentRule, subject: Subject, *, where: str, what: str) -> LintFinding:
    sure = _holds(rule.when, subject) is True
    return LintFinding(
        rule=rule.id,
        subject=subject.name,
        where=where,
        what=what,
        kind=rule.kind,
        severity=rule.severity if sure else "note",
        truth=rule.truth,
        instead=rule.instead,
        source=rule.evidence.summary,
        condition=None if sure else _condition(rule.when),
    )


def _condition(when: Selector) -> str:
    parts = [f"on {', '.join(when.architectures)}"] if when.architectures else []
    parts += [f"with torch {when.torch}"] if when.torch else []
    parts += [f"with ROCm {when.rocm}"] if when.rocm else []
    return " and ".join(parts)
