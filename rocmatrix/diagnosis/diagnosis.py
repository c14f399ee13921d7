"""A log's diagnosis: the ranked matches with the rules they touch, as text for a person and as plain data."""

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
from rocmatrix.diagnosis.ranking import HostContext, Ranked, fit, rank
from rocmatrix.diagnosis.search.match import Match, Scanned
from rocmatrix.diagnosis.signature import Area, Signature
from rocmatrix.diagnosis.similar.cases import Similar
from rocmatrix.diagnosis.similar.excerpt import End, excerpt, reports_trouble
from rocmatrix.diagnosis.similar.likeness import alike, supported
from rocmatrix.matrix.matrix import Matrix
from rocmatrix.matrix.rule import Rule
from rocmatrix.runtime.errors import RocmatrixError

OTHERS_SHOWN = 5
CAUSES_SHOWN = 5
SIMILAR_AROUND = 3  # matches whose lines are compared with known failures
NEXT: dict[Area, str] = {
    "kernels": "`./invokew explain` lists which releases hold code for the card; `./invokew smoke --probe device`.",
    "driver": "`./invokew doctor` examines driver, nodes and groups of this host.",
    "container": "`./invokew doctor`, then `./invokew run --dry-run` to compare the flags of the container.",
    "memory": "run once with half the micro-batch; `./invokew doctor` shows how much memory the card has.",
    "fault": "`./invokew smoke` on one card: a pass there moves the suspicion from the machine to the model's code.",
    "collectives": "`./invokew smoke --probe two_gpu_step`, and once more with `--in native` and NCCL_P2P_DISABLE=1.",
    "network": "one machine with `torchrun --standalone` first; then name the interface.",
    "convolutions": "one run with MIOPEN_LOG_LEVEL=5 names the solver.",
    "attention": "one run with the math kernel: torch.nn.attention.sdpa_kernel(SDPBackend.MATH).",
    "compile": "one run with TORCH_COMPILE_DISABLE=1.",
    "numbers": "`./invokew smoke --probe blas --probe amp` compares the card's numbers with the processor's.",
    "packages": "`./invokew explain`, and install from its cell's lock (`./invokew build`).",
    "host": "`./invokew doctor` shows memory, shared memory and limits of this host.",
    "build": "`./invokew build --dry-run` prints the command; the kept log holds every line.",
    "program": "the lines just above the match, in the log itself.",
}
NOTHING = (
    "Look for the first line that reports an error, above the traceback; repeat once with AMD_SERIALIZE_KERNEL=3 "
    "and NCCL_DEBUG=INFO, and diagnose that log. `./invokew doctor` and `./invokew smoke` test the machine itself."
)


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


def text_lines(found: Diagnosis) -> list[str]:
    """Return the diagnosis for a person."""
    first_remark = found.ranked.remarks[:1]
    if found.best is None and first_remark:
        reported = [f"{found.name}: nothing here explains a failure ({found.lines} lines read); reported was:"]
        reported += _best(found, first_remark[0])
    elif found.best is None:
        reported = [f"{found.name}: nothing here explains a failure ({found.lines} lines read)", *_similar(found)]
        reported.append(f"  hint:   {NOTHING}")
    else:
        reported = _best(found, found.best)
        reported += [f"  also:   {_line(match)}" for match in found.ranked.failures[1 : OTHERS_SHOWN + 1]]
    reported += [f"  unread: {row}" for row in found.left_out[:OTHERS_SHOWN]]
    remarks = found.ranked.remarks[found.best is None :][:OTHERS_SHOWN]
    return reported + [f"  {match.signature.kind + ':':<7} {_line(match)}" for match in remarks]


def _best(found: Diagnosis, best: Match) -> list[str]:
    signature = best.signature
    reported = [
        f"{signature.id}: {best.title}",
        f"  seen:   {best.where}{_times(best)}: {best.text}",
        *_causes(found, best),
        *([f"  remedy: {signature.remedy}"] if signature.remedy != signature.next else []),
        f"  hint:   {next_step(signature)}",
        f"  source: {signature.evidence.summary}; words compared: {signature.checked}",
    ]
    if not found.supported:
        reported.append("  doubt:  none of the known failures nearest to this log had this cause")
    if fit(signature, found.here) < 0:
        reported.append(f"  doubt:  so far seen with {seen_with(signature)}, which is not what this is")
    return reported + [f"  rule:   {line}" for line in _touched(found, signature)]


def _causes(found: Diagnosis, best: Match) -> list[str]:
    stated = f"  cause:  {best.cause}"
    rows = [_listed(row) for row in possibilities(found, best)[:CAUSES_SHOWN]]
    similar = list(_similar(found))
    if found.is_general and listed_before_similar(found) == 0:
        return [*similar, stated, *rows]
    return [stated, *with_similar(found, rows, similar)]


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


def _listed(row: Possible) -> str:
    shown = f" [{row.why}]" if row.why else ""
    return f"  {'likely:' if row.decided else 'maybe: '} {row.says}{shown} Test: {row.test}"


def _similar(found: Diagnosis) -> Iterator[str]:
    for one in found.similar:
        yield f"  alike:  {one.cause} (so it was in {one.source}, whose lines are similar; no proof)"


def next_step(signature: Signature) -> str:
    """Return what to do after a signature was seen."""
    return signature.next or NEXT[signature.area]


def _touched(found: Diagnosis, signature: Signature) -> Iterator[str]:
    for rule in touched(found, signature):
        yield f"{rule.id} ({rule.verdict}): {rule.summary}"


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


def _line(match: Match) -> str:
    return f"{match.signature.id}: {match.title} ({match.where}{_times(match)})"


def _times(match: Match) -> str:
    return f" and {match.count - 1} more" if match.count > 1 else ""


def seen_with(signature: Signature) -> str:
    """Return on what a signature was seen."""
    when = signature.when
    parts = [", ".join(when.architectures)] if when.architectures else []
    parts += [f"torch {when.torch}"] if when.torch else []
    parts += [f"ROCm {when.rocm}"] if when.rocm else []
    return "; ".join(parts) or "any"


def described(found: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis as plain data: `failures` best first, and `remarks`."""
    return {
        "log": found.name,
        "lines": found.lines,
        "bytes": found.bytes,
        "left_out": list(found.left_out),
        "failures": [_described(match, found) for match in found.ranked.failures],
        "remarks": [_described(match, found) for match in found.ranked.remarks],
        "certain": found.is_certain,
        "similar": [{"source": one.source, "cause": one.cause, "score": round(one.score, 1)} for one in found.similar],
        "similar_after": listed_before_similar(found),
    }


def _described(match: Match, found: Diagnosis) -> dict[str, Any]:
    signature = match.signature
    return {
        "id": signature.id,
        "title": match.title,
        "kind": signature.kind,
        "log": match.log or found.name,
        "line": match.line,
        "count": match.count,
        "text": match.text,
        "cause": match.cause,
        "causes": [
            {"says": row.says, "test": row.test, "decided": row.decided, "why": row.why}
            for row in possibilities(found, match)
        ],
        "remedy": signature.remedy,
        "next": next_step(signature),
        "sources": signature.evidence.sources,
        "confidence": signature.evidence.confidence,
        "checked": signature.checked,
        "fits": fit(signature, found.here),
        "rules": [{"id": rule.id, "verdict": rule.verdict, "says": rule.summary} for rule in touched(found, signature)],
    }
