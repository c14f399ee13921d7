"""A log's diagnosis: the ranked matches, what log and host say of their causes, and the rules they touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from rocmatrix.diagnosis.comparisons.compare import Compared
from rocmatrix.diagnosis.comparisons.forms import NONE, Comparisons
from rocmatrix.diagnosis.machine import card_support, compared_values
from rocmatrix.diagnosis.machine.card_support import CardSupport
from rocmatrix.diagnosis.machine.log_environment import Values
from rocmatrix.diagnosis.matcher import Scanner
from rocmatrix.diagnosis.possible_causes import Possible, ordered
from rocmatrix.diagnosis.ranking import HostContext, Ranked, rank
from rocmatrix.diagnosis.search.match import Match, Scanned
from rocmatrix.diagnosis.signature import Signature
from rocmatrix.diagnosis.similar.cases import Similar
from rocmatrix.diagnosis.similar.excerpt import End, excerpt, reports_trouble
from rocmatrix.diagnosis.similar.likeness import alike, supported
from rocmatrix.matrix.matrix import Matrix
from rocmatrix.matrix.rule import Rule
from rocmatrix.runtime.errors import RocmatrixError

SIMILAR_AROUND = 3  # matches whose lines are compared with known failures


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What was found in a log of `lines` lines and `bytes` bytes (unpacked), and which rules are touched.

    `here` is what it was ranked for: this host, or a card or cell as requested; `stated` is what the log alone states.
    `compared` are the rules on two values that hold, by id; `similar` are known failures that the log is like, where
    no cause is certain. `supported` is whether a known failure near the log has the cause that is stated.
    """

    name: str
    lines: int
    bytes: int
    ranked: Ranked
    here: HostContext
    rules: dict[str, Rule]
    signs: dict[tuple[str, int], Match] = field(default_factory=dict)
    failed_checks: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()
    stated: HostContext = field(default_factory=HostContext)
    card: CardSupport | None = None
    compared: Mapping[str, Compared] = field(default_factory=dict)
    similar: tuple[Similar, ...] = ()
    supported: bool = True

    @property
    def best(self) -> Match | None:
        """The most likely reason, or None where nothing explains a failure."""
        return next(iter(self.ranked.failures), None)

    @property
    def is_stated(self) -> bool:
        """Whether the best match states its cause, or log or host show one."""
        if self.best is None:
            return False
        rows = possibilities(self, self.best)
        return rows[0].decided if rows else self.best.signature.kind == "cause"

    @property
    def is_general(self) -> bool:
        """Whether the best match only has the form of a failure, or what follows from another one."""
        best = self.best
        return best is not None and (best.signature.family or best.signature.kind == "aftermath") and not self.is_stated

    @property
    def is_certain(self) -> bool:
        """Whether a cause is stated that a known failure near the log has, too."""
        return self.is_stated and self.supported


def diagnose(
    blocks: Iterable[bytes],
    *,
    name: str,
    signatures: Iterable[Signature],
    here: HostContext,
    matrix: Matrix | None = None,
    failed_checks: Iterable[str] = (),
    comparisons: Comparisons = NONE,
) -> Diagnosis:
    """Diagnose a log that comes as chunks of whole lines. Without a matrix, rules are named only.

    `failed_checks` are ids of doctor's checks that failed on the host the log is of. What the log itself states of card
    and versions stands in where `here` knows nothing.

    Args:
        blocks: the log in chunks of whole lines, as bytes.
        name: name of the log in messages, such as its path.
        signatures: signatures to match, the project's own errors included.
        failed_checks: ids of doctor's checks (D101, ...) that failed on the host of the log.
        comparisons: rules that relate two values of the log, or of the host that `here` describes.
    """
    reader, end = Values(comparisons), End()
    scanned = Scanner(signatures).scan(reader.watched(end.watched(blocks)))
    found = concluded(
        scanned,
        name=name,
        here=reader.completed(here),
        matrix=matrix,
        failed_checks=checks_of(reader, here, failed_checks),
        compared=compared_values.of(reader, here, matrix.architectures if matrix else {}),
    )
    return replace(compared_with_known(found, end.kept), stated=reader.stated())


def diagnose_all(
    logs: Iterable[tuple[str, Iterable[bytes]]],
    *,
    name: str,
    signatures: Iterable[Signature],
    here: HostContext,
    matrix: Matrix | None = None,
    failed_checks: Iterable[str] = (),
    comparisons: Comparisons = NONE,
) -> Diagnosis:
    """Diagnose logs of one run together, oldest first. One that cannot be read is named in `left_out`.

    Args:
        logs: each with its name, as chunks of whole lines.
        name: name of the whole in messages, such as the folder's path.
        signatures: signatures to match, the project's own errors included.
        failed_checks: ids of doctor's checks (D101, ...) that failed on the host of the logs.
        comparisons: rules that relate two values of the logs, or of the host that `here` describes.
    """
    reader, scanner, whole, left_out = Values(comparisons), Scanner(signatures), Scanned(), []
    end = End()
    for order, (log, blocks) in enumerate(logs):
        try:
            whole.add(scanner.scan(reader.watched(end.watched(blocks), log=log)), log=log, order=order)
        except RocmatrixError as error:
            left_out.append(f"{log}: {error.what}")
    found = concluded(
        whole,
        name=name,
        here=reader.completed(here),
        matrix=matrix,
        failed_checks=checks_of(reader, here, failed_checks),
        compared=compared_values.of(reader, here, matrix.architectures if matrix else {}),
    )
    return replace(compared_with_known(found, end.kept), left_out=tuple(left_out), stated=reader.stated())


def compared_with_known(found: Diagnosis, end: bytes) -> Diagnosis:
    """Return a diagnosis with the known failures that the log is like, where no cause is certain.

    The cause of two values that contradict each other needs no support.

    Args:
        found: what the signatures found.
        end: last bytes of the log.
    """
    best, ranked = found.best, found.ranked
    text = excerpt(end, [match.context or match.text for match in ranked.failures[:SIMILAR_AROUND]])
    if best is None and not reports_trouble(
        _without(end.decode(errors="replace"), [match.text for match in ranked.remarks])
    ):
        return found
    if best is not None and found.is_stated and best.signature.id not in found.compared:
        found = replace(found, supported=supported(text, best.signature.id, best.signature.sample))
    if found.is_certain:
        return found
    ids = [match.signature.id for match in (*ranked.failures, *ranked.remarks)]
    stated = _stated(found, best) if best is not None and not found.is_general else ""
    return replace(found, similar=alike(text, ids, failed=best is not None, lines=found.lines, stated=stated))


def _without(text: str, harmless: Sequence[str]) -> str:
    return "\n".join(line for line in text.split("\n") if not any(known in line for known in harmless))


def _stated(found: Diagnosis, best: Match) -> str:
    return " ".join((best.title, best.cause, *(row.says for row in possibilities(found, best)[:1])))


def checks_of(reader: Values, here: HostContext, failed_checks: Iterable[str]) -> frozenset[str]:
    """Return the failed checks of this host; none where the log is of another machine.

    Args:
        reader: what was read of the log's own words.
        here: where the log is taken to be from.
        failed_checks: ids of doctor's checks (D101, ...) that failed on this host.
    """
    return frozenset() if reader.is_of_another_machine(here) else frozenset(failed_checks)


def concluded(
    scanned: Scanned,
    *,
    name: str,
    here: HostContext,
    matrix: Matrix | None,
    failed_checks: frozenset[str],
    compared: Mapping[str, Compared] = MappingProxyType({}),
) -> Diagnosis:
    """Return the diagnosis of what was read.

    Args:
        name: name of the log in messages, such as its path.
        failed_checks: ids of doctor's checks (D101, ...) that failed on the host of the log.
        compared: the rules on two values that hold, by id.
    """
    stated = [one.match for one in compared.values() if one.is_answer]
    return Diagnosis(
        name=name,
        lines=scanned.lines,
        bytes=scanned.bytes,
        ranked=rank([*scanned.matches.values(), *stated], here),
        here=here,
        rules={rule.id: rule for rule in every_rule(matrix)} if matrix else {},
        signs=scanned.signs,
        failed_checks=failed_checks,
        card=card_support.of(matrix, here),
        compared=compared,
    )


def possibilities(found: Diagnosis, match: Match) -> tuple[Possible, ...]:
    """Return the causes that a symptom can have, those first that log or host support."""
    failed, card = found.failed_checks, found.card
    return ordered(match, found.here, signs=found.signs, failed=failed, card=card, compared=found.compared)


def every_rule(matrix: Matrix) -> Iterator[Rule]:
    """Yield the rules people wrote, those of companion packages, and those that follow from other data."""
    yield from matrix.rules
    yield from (rule for companion in matrix.companions for rule in companion.rules)
    yield from matrix.derived_rules


def with_similar(found: Diagnosis, listed: Sequence[Any], similar: Sequence[Any]) -> list[Any]:
    """Return the listed causes with the similar failures among them.

    Args:
        listed: of the best match, the most likely first.
        similar: in the order of `found.similar`.
    """
    before = listed_before_similar(found)
    return [*listed[:before], *similar, *listed[before:]]


def listed_before_similar(found: Diagnosis) -> int:
    """Return how many listed causes stand before similar failures: fewer where they say more than the best match.

    Of 1,001 learned threads that no signature was written for, 234 had a general answer: its first cause was right in
    29 %, that of the nearest other thread in 44 %; where the answer was another, in 67 and 59 %. A cause that the log
    hints at stands first.
    """
    if found.is_general:
        return int(found.best is not None and any(row.hinted for row in possibilities(found, found.best)[:1]))
    return 1 if found.similar and found.similar[0].distinct else 2


def touched(found: Diagnosis, signature: Signature) -> list[Rule]:
    """Return the rules that a signature names, and for one about kernels the rules against the cell itself.

    Rules on other architectures than the one at hand are left out.
    """
    here = found.here
    named = [found.rules[name] for name in signature.rules if name in found.rules]
    fitting = [rule for rule in named if _is_about(rule, here)]
    if signature.area == "kernels" and here.torch is not None:
        axes: dict[str, Any] = {"architecture": here.architecture, "torch": here.torch, "rocm": here.rocm}
        against = (rule for rule in found.rules.values() if rule.decides and rule.verdict in ("broken", "degraded"))
        fitting += [rule for rule in against if rule not in fitting and rule.when.matches(**axes)]
    return fitting


def _is_about(rule: Rule, here: HostContext) -> bool:
    named = rule.when.architectures
    return named is None or here.architecture is None or here.has(list(named))
