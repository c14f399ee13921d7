"""What was found in one log, and what several logs of a folder hold together."""

from rocmatrix.diagnosis.search.match import LAST_LINES, MOST_COUNTED, Match, Scanned, merge
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES

UNCAUGHT = next(one for one in SIGNATURES if one.uncaught)
CERTAIN = next(one for one in SIGNATURES if not one.uncaught and not one.causes)


def match(signature, line, **more):
    return Match(signature=signature, line=line, text="x", weight=more.pop("weight", 1), **more)


def test_merged_matches_keep_the_first_line_and_add_up_to_a_limit():
    kept = {"a": match(CERTAIN, 3, count=MOST_COUNTED - 1, last=5, weight=2)}
    merge(kept, "a", match(CERTAIN, 9, count=4, last=9, weight=7), counts=True)
    assert (kept["a"].line, kept["a"].last, kept["a"].count, kept["a"].weight) == (3, 9, MOST_COUNTED, 7)
    merge(kept, "a", match(CERTAIN, 11, last=11, weight=9), counts=False)  # the second view of the same lines
    assert (kept["a"].last, kept["a"].weight) == (9, 7)
    merge(kept, "b", match(CERTAIN, 4), counts=False)
    assert kept["b"].line == 4


def test_exceptions_stand_at_the_end_of_a_log_alone_and_never_in_one_that_grows():
    rows = {"old": match(UNCAUGHT, 1, last=1), "new": match(UNCAUGHT, 2, last=2), "certain": match(CERTAIN, 1, last=1)}
    scanned = Scanned(matches=rows, lines=LAST_LINES + 1)
    assert set(scanned.ended().matches) == {"new", "certain"}
    assert set(scanned.known().matches) == {"certain"}


def test_logs_of_a_folder_add_up_and_each_match_names_its_log():
    first = Scanned(matches={"a": match(CERTAIN, 8, last=8)}, lines=10, bytes=100)
    sign = {("a", 0): match(CERTAIN, 7)}
    first.add(Scanned(matches={"a": match(CERTAIN, 2, last=2)}, signs=sign, lines=5, bytes=50), log="b.log", order=1)
    assert (first.lines, first.bytes, first.matches["a"].count, first.matches["a"].where) == (15, 150, 2, "line 8")
    assert (first.signs["a", 0].where, first.signs["a", 0].order) == ("b.log line 7", 1)
