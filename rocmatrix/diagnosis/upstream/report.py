"""The report of a failure as a tracker asks for it, filled in as far as log and host state it. Nothing is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rocmatrix.diagnosis.diagnosis import Diagnosis
from rocmatrix.diagnosis.upstream.excerpt import Excerpt
from rocmatrix.diagnosis.upstream.facts import FROM_LOG, Facts
from rocmatrix.diagnosis.upstream.trackers import Ask, Tracker
from rocmatrix.runtime.redaction import redacted

_THREAD = re.compile(r"^([\w.-]{1,60}/[\w.-]{1,80})#(\d{1,7})$")
OTHERS, THREADS = 2, 5


def report(found: Diagnosis, trackers: Sequence[Tracker], facts: Facts, quoted: Excerpt) -> str:
    """Return the report as Markdown, without names of people and machines.

    A field that neither log nor host states is `unknown`, with the command that shows it.

    Args:
        found: causes of the failure, best first.
        trackers: those that the failure may belong to, best first, at least one.
        facts: what log and host state, by field, each with where it is from.
        quoted: lines of the log around the failure.
    """
    first, *others = trackers
    lines = [*_advice(found, first, others), "", f"# {_title(found, facts)}", ""]
    filled = {**facts, "failure": (_failure(found), FROM_LOG), "lines": ("\n".join(quoted.quoted), FROM_LOG)}
    for ask in first.asks:
        lines += [f"## {ask.label}", "", *_field(ask, filled, quoted), ""]
    return redacted("\n".join(lines))


def _advice(found: Diagnosis, first: Tracker, others: Sequence[Tracker]) -> Iterator[str]:
    """Yield what to know before it is sent, as a comment of Markdown."""
    yield "<!--"
    yield f"Report to: https://{first.address} ({first.title})"
    yield from (f"or, where that is the wrong project: https://{one.address}" for one in others[:OTHERS])
    if found.best is not None:
        threads = [source for source in found.best.signature.evidence.sources if _THREAD.match(source)]
        if threads:
            yield f"Known there already, read these first: {', '.join(threads[:THREADS])}"
        if found.best.signature.kind == "cause":
            yield f"Known cause: {found.best.cause}"
            yield f"Report it only where this did not help: {found.best.signature.remedy}"
    yield "Names of users and hosts, homes, addresses and tokens were taken out; read it once more before it is sent."
    yield f"Form read: {first.evidence.summary}"
    yield "-->"


def _title(found: Diagnosis, facts: Facts) -> str:
    card = f" on {facts['cards'][0]}" if "cards" in facts else ""
    rocm = f", ROCm {facts['rocm'][0]}" if "rocm" in facts else ""
    return (found.best.title if found.best else "Failure without a known signature") + card + rocm


def _failure(found: Diagnosis) -> str:
    if found.best is None:
        return "The log below; no known failure was found in it."
    also = "".join(f"\n- also: {match.text}" for match in found.ranked.failures[1:3])
    return f"{_code(found.best.text)} ({found.best.where} of the log){also}"


def _fence(lines: Sequence[str]) -> str:
    """Return more backticks than stand together in the lines, at least three: fewer would end the block."""
    return "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))


def _code(text: str) -> str:
    """Return a text as code within a line: between more backticks than stand together in it."""
    runs = re.findall("`+", text)
    mark = "`" * (1 + max(map(len, runs), default=0))
    return f"{mark} {text} {mark}" if runs else f"{mark}{text}{mark}"


def _field(ask: Ask, filled: Facts, quoted: Excerpt) -> list[str]:
    if ask.fill == "lines":
        fence = _fence(quoted.quoted)
        return [f"From line {quoted.first} of the log:", "", f"{fence}text", *quoted.quoted, fence]
    if ask.fill not in filled:
        return [_unknown(ask)]
    value, origin = filled[ask.fill]
    return [value if ask.fill == "failure" else f"{value} ({origin})"]


def _unknown(ask: Ask) -> str:
    return f"unknown: run `{ask.run}`" if _is_command(ask.run) else f"unknown: {ask.run}"


def _is_command(text: str) -> bool:
    return not text.startswith(("describe", "write", "name", "attach", "start once", "the ", "run again"))
