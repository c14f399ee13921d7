"""The words of a diagnosis: as text for a person, and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rocmatrix.diagnosis.diagnosis import Diagnosis, listed_before_similar, possibilities, touched, with_similar
from rocmatrix.diagnosis.possible_causes import Possible
from rocmatrix.diagnosis.ranking import fit
from rocmatrix.diagnosis.search.match import Match
from rocmatrix.diagnosis.signature import Area, Signature

OTHERS_SHOWN = 5
CAUSES_SHOWN = 5
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
