"""docs/failures.html: every known failure by what a user sees, searched in the browser without a network."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rocmatrix.diagnosis.diagnosis import next_step, seen_with
from rocmatrix.diagnosis.signature import Signature
from rocmatrix.matrix.resolver.statements import dated
from rocmatrix.runtime import templates

TEMPLATE = "failures.html.j2"
FILE = "docs/failures.html"
RESULTS = "benchmarks/results/diagnose_cases.json"
MOST_HEAD = 160  # characters of a sample that stands in an entry's head as it is
_THREAD = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")


@dataclass(frozen=True, kw_only=True)
class Shares:
    """How many of `cases` kept threads each signature answers first with the settled cause, by its id."""

    cases: int
    explained: Mapping[str, int]

    def of(self, name: str) -> str:
        """Return the share of a signature as text, such as `3 of 545 kept cases (0.6 %)`; empty for none.

        Args:
            name: id of the signature.
        """
        count = self.explained.get(name, 0)
        if not count:
            return ""
        return f"{count} of {self.cases} kept cases ({100 * count / max(1, self.cases):.1f} %)"


def shares(root: Path) -> Shares:
    """Read what `python -m benchmarks.diagnose_cases` counted last."""
    kept = json.loads((root / RESULTS).read_text(encoding="utf-8"))["explains"]
    return Shares(cases=kept["cases"], explained=kept["signatures"])


def page(signatures: Iterable[Signature], counted: Shares) -> str:
    """Render the page; entries stand in the order of the file.

    What hundreds of entries share stands once, and the page's script puts it where it belongs.
    """
    entries = [_entry(one, counted) for one in signatures]
    steps = sorted({entry["next"] for entry in entries})
    areas = sorted({entry["area"] for entry in entries})
    environment = templates.environment(html=True)
    environment.filters["text"] = _text
    return environment.get_template(TEMPLATE).render(entries=entries, areas=areas, steps=steps, cases=counted.cases)


def _entry(one: Signature, counted: Shares) -> dict[str, Any]:
    return {
        "id": one.id,
        "title": one.filled(one.title, ""),
        "kind": f"{one.kind}, family" if one.family else one.kind,
        "area": one.area,
        "seen": one.sample.strip(),
        "head": _head(one.sample.strip()),
        "cause": one.filled(one.cause, ""),
        "causes": [{"says": one.filled(row.says, ""), "test": one.filled(row.test, "")} for row in one.causes],
        "remedy": one.remedy,
        "next": next_step(one),
        "versions": "" if seen_with(one) == "any" else seen_with(one),
        "share": counted.of(one.id),
        "expires": dated("", one.id, "", one.evidence).expires,
        "confidence": f"{one.evidence.confidence} {one.evidence.date}",
        "sources": [_source(text) for text in one.evidence.sources],
    }


def _head(sample: str) -> str:
    """Return a sample that is short, or the beginning of the first line of one that the entry shows as a whole."""
    lines = sample.splitlines()
    return sample if len(sample) <= MOST_HEAD and len(lines) == 1 else f"{lines[0][: MOST_HEAD // 2]}…"


def _text(value: str) -> Markup:
    """Escape a text between tags, where quotes need none: they were 18 kB of the page."""
    return Markup(html.escape(value, quote=False))


def _source(text: str) -> dict[str, str]:
    """Return a source with the address of its thread; empty where it is a file."""
    thread = _THREAD.fullmatch(text)
    return {"text": text, "address": f"https://github.com/{thread[1]}/issues/{thread[2]}" if thread else ""}
