"""The page on rows for a language model: findings, then counts, then tokens coloured by their part in the loss."""

from __future__ import annotations

from html import escape
from statistics import median

from trainer.analysis.language.inspection import Inspection, Sample
from trainer.analysis.report.page import folded, page, table

# Each part also differs without its colour: underlined, framed, or in dim letters.
STYLE = """
:root { --answer: #d6f0dc; --stop: #ffe0b8; --fill: #eaeef2 }
@media (prefers-color-scheme: dark) { :root { --answer: #17402a; --stop: #5a3a08; --fill: #21262d } }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: .85rem/1.7 ui-monospace, monospace; margin: .3rem 0 1.2rem;
 padding: .5rem .7rem; border: 1px solid var(--rule); border-radius: 6px }
.prompt { color: var(--dim) } .answer { background: var(--answer); text-decoration: underline;
 text-decoration-thickness: 1px; text-underline-offset: 3px } .stop { background: var(--stop);
 padding-bottom: 2px; outline: 1px solid var(--ink) }
.padding { background: var(--fill); color: var(--dim); font-style: italic }
.row { margin: 0; font-size: .9rem; overflow-wrap: anywhere }
"""
METHODS = {
    "pretrain": "text, all of it trained",
    "sft": "answers to prompts",
    "dpo": "pairs of answers",
    "kto": "answers marked good or bad",
}
MOST_TEXT = 20_000  # characters of a part that are shown


def html(seen: Inspection) -> str:
    """Return the page."""
    lead = (
        f"{METHODS[seen.method]} ({seen.method}); tokenizer {seen.tokenizer}, chat template {seen.template}, "
        f"sequences of {seen.sequence} tokens. {seen.usable:,} of {seen.rows:,} rows can be trained on."
    )
    sections = [("Findings", findings(seen)), ("Counts", counts(seen)), ("Rows", legend() + samples(seen))]
    return page(f"Trained tokens of {seen.name}", lead, sections, style=STYLE)


def findings(seen: Inspection) -> str:
    """Return every row that is not trained as it stands, with file and line."""
    if not seen.refused:
        return "<p>None: each row was read to its end and can be trained on.</p>"
    rows = [(each.where, each.code, each.what, each.outcome) for each in seen.findings]
    content = table(("file and line", "code", "what is wrong", "what training does"), rows)
    more = seen.refused - len(rows)
    return content + (f"<p>And {more:,} more.</p>" if more else "")


def counts(seen: Inspection) -> str:
    """Return the sums, and the counts of each row that is shown."""
    share = seen.trained / seen.tokens if seen.tokens else 0.0
    rows: list[tuple[str, object]] = [
        ("rows", seen.rows),
        ("rows that can be trained on", seen.usable),
        ("tokens", seen.tokens),
        ("trained tokens", seen.trained),
        ("share of trained tokens", f"{share:.1%}"),
    ]
    if seen.method == "kto":
        rows.append(("good and bad answers", f"{seen.good:,} and {len(seen.trained_counts) - seen.good:,}"))
    if each := seen.trained_counts:
        rows.append(("trained tokens of a row", f"{min(each):,} to {max(each):,}, median {median(each):,.0f}"))
    head = ("row", "tokens", "trained", "padding alone")
    listed = [(one.where, one.tokens, one.trained, one.padding) for one in seen.samples]
    note = '<p class="dim">Padding alone: what fills the sequence if no other row shares it; packing lets them.</p>'
    return table(("what", "count"), rows) + folded("Each row that is shown below", table(head, listed) + note)


def legend() -> str:
    """Return what the colours mean."""
    words = {
        "prompt": "prompt: read, carries no loss",
        "answer": "answer: trained",
        "stop": "stop token: trained",
        "padding": "padding",
    }
    return "<p>" + " ".join(f'<span class="{kind}">{text}</span>' for kind, text in words.items()) + "</p>"


def samples(seen: Inspection) -> str:
    """Return the rows that are shown."""
    hidden = seen.usable - len(seen.samples)
    note = f'<p class="dim">{hidden:,} more rows are counted above and not shown.</p>' if hidden > 0 else ""
    return "".join(map(_row, seen.samples)) + note


def _row(sample: Sample) -> str:
    body = "".join(f'<span class="{kind}">{_shown(text)}</span>' for kind, text in sample.parts)
    filled = f' <span class="padding">{sample.padding:,} tokens of padding</span>' if sample.padding else ""
    words = f"{sample.tokens:,} tokens, {sample.trained:,} trained"
    return f'<p class="row"><b>{escape(sample.where)}</b>: {words}</p><pre dir="auto">{body}{filled}</pre>'


def _shown(text: str) -> str:
    """Return text for HTML, control characters as their pictures and so much of it that a browser opens the page."""
    seen = "".join(chr(0x2400 + ord(one)) if ord(one) < 32 and one not in "\n\t" else one for one in text[:MOST_TEXT])
    return escape(seen) + (f" […{len(text) - MOST_TEXT:,} more characters]" if len(text) > MOST_TEXT else "")
