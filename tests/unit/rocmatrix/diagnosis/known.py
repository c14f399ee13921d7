"""The shipped signatures, read once, and the best match of a text."""

import io
from functools import cache
from pathlib import Path

from benchmarks.diagnose_cases import diagnosed, listed
from rocmatrix.diagnosis import log_reader, signature
from rocmatrix.diagnosis.comparisons import forms
from rocmatrix.diagnosis.matcher import Scanner
from rocmatrix.diagnosis.ranking import HostContext, rank

ROOT = Path(__file__).resolve().parents[4]
SIGNATURES = signature.load(ROOT)
COMPARISONS = forms.load(ROOT)
LISTED = (*SIGNATURES, *COMPARISONS.rules)  # all that the pages of failures list


@cache
def scanner():
    return Scanner(SIGNATURES)


def ranked(log, here=None):
    data = log if isinstance(log, bytes) else log.encode()
    blocks = log_reader.chunks(io.BytesIO(data), name="a test")
    return rank(scanner().scan(blocks).matches.values(), here or HostContext())


def best(log, here=None):
    """The id of the best failure, or of the first remark where there is none, or None."""
    found = ranked(log, here)
    return next((match.signature.id for match in (*found.failures, *found.remarks)), None)


def signatures_of(log):
    """Return the ids of what a log's last words lead to, families included."""
    return [match.signature.id for match in ranked(log).failures]


def listed_causes(log):
    """Return the causes that the best match lists, without those of similar failures."""
    found = diagnosed(log, SIGNATURES)
    return [text for text, _ in listed(found, found.best)]
