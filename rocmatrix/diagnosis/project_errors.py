"""This project's own errors as signatures: a log that holds one is explained in the words of its catalog."""

from __future__ import annotations

import json
import re
from typing import Annotated

from pydantic import StringConstraints

from rocmatrix.diagnosis.signature import Kind, Signature
from rocmatrix.matrix.statement import Evidence
from rocmatrix.runtime.codes.entry import CatalogEntry
from rocmatrix.runtime.errors import CATALOG
from rocmatrix.runtime.paths import TRAINER_ERRORS

SOURCE = Evidence(sources=["docs/errors.md"], confidence="verified in source", date="2026-11-22")
# They say that something failed, and of what little more; RM620 fails nothing.
_KINDS: dict[str, Kind] = dict.fromkeys(("RM202", "RM207", "RM208", "RM499", "RM599", "RM612", "RM630"), "aftermath")
_KINDS |= {"RM620": "note"}


class ProjectError(Signature):
    """A code of the catalogs, as it is printed: the code and its title."""

    id: Annotated[str, StringConstraints(pattern=r"^RM\d{3}$")]


def entries() -> dict[str, CatalogEntry]:
    """Return both programs' catalogs by code."""
    reported = json.loads(TRAINER_ERRORS.read_text(encoding="utf-8"))
    return CATALOG | {entry["code"]: CatalogEntry(**entry) for entry in reported}


def signatures() -> tuple[ProjectError, ...]:
    """Return a signature for every code."""
    return tuple(map(_signature, entries().values()))


def _signature(entry: CatalogEntry) -> ProjectError:
    printed = f"{entry.code} {entry.title}"
    return ProjectError(
        id=entry.code,
        title=entry.title,
        kind=_KINDS.get(entry.code, "symptom"),
        area="program",
        match=[r"\b" + " ".join(map(re.escape, printed.split()))],
        sample=printed,
        cause=entry.meaning,
        remedy=entry.next,
        next=entry.next,
        evidence=SOURCE,
        checked="in its source",
    )
