"""A finding as one line and as data, and what a check comes to."""

import pytest

from rocmatrix.runtime.errors import CATALOG
from rocmatrix.verify.finding import SHOWN, Check, Finding, printable

TITLE = CATALOG["RM216"].title


def finding(count):
    return Finding(code="RM216", what="wrong", places=tuple(f"/p{number}" for number in range(count)))


@pytest.mark.parametrize(
    ("count", "end"),
    [
        (0, "wrong"),
        (1, "wrong: /p0"),
        (SHOWN, "wrong: /p0, /p1, /p2, /p3, /p4"),
        (SHOWN + 1, "wrong: /p0, /p1, /p2, /p3, /p4 and 1 more"),
        (SHOWN + 2, "wrong: /p0, /p1, /p2, /p3, /p4 and 2 more"),
    ],
)
def test_finding_shows_a_few_places_and_counts_the_rest(count, end):
    assert finding(count).summary == f"RM216 {TITLE}: {end}"


def test_finding_as_data_holds_every_place():
    expected = {"code": "RM216", "title": TITLE, "what": "wrong", "places": [f"/p{n}" for n in range(9)]}
    assert finding(9).described() == expected
    assert Finding(code="RM216", what="w", places=("/a\x1b",)).described()["places"] == ["/a\\x1b"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("/a b/é", "/a b/é"), ("/a\n", "/a\\n"), ("\x1b[31m", "\\x1b[31m"), ("\u202e", "\\u202e"), ("", "")],
)
def test_unprintable_text_is_escaped(text, shown):
    assert printable(text) == shown
    assert Finding(code="RM216", what="w", places=(text,)).summary.endswith(f": {shown}" if shown else ": w")


@pytest.mark.parametrize(
    ("findings", "skipped", "status"),
    [((), False, "passed"), ((), True, "not checked"), (1, False, "failed"), (1, True, "failed")],
)
def test_check_has_failed_where_anything_was_found_and_passed_where_it_was_made(findings, skipped, status):
    found = (finding(1),) if findings else ()
    check = Check(name="n", summary="s", findings=found, notes=("x", "y"), skipped=skipped, data={"bytes": 1})
    assert check.status == status
    assert check.described() == {
        "check": "n",
        "status": status,
        "summary": "s",
        "findings": [each.described() for each in found],
        "notes": ["x", "y"],
        "bytes": 1,
    }
