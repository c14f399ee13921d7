"""What the doctor works by is listed with the matrix's own statements, and asked for when it is past its day."""

from rocmatrix.doctor import knowledge
from rocmatrix.doctor.environment import rules
from rocmatrix.doctor.statements import statements
from rocmatrix.matrix.resolver.freshness import outdated
from rocmatrix.runtime.paths import ROOT
from tests.fixtures.cells import MATRIX
from tests.fixtures.sources import without_a_source

FOUND = list(statements(ROOT))


def test_statements_hold_every_rule_window_and_caution():
    known = knowledge.load(ROOT)
    entries = [(s.file, s.entry) for s in FOUND]
    assert entries == [
        *(("matrix/environment.yaml", rule.id) for rule in rules.load(ROOT)),
        *(("matrix/hosts.yaml", window.package) for window in known.drivers),
        *(("matrix/hosts.yaml", caution.id) for caution in known.cautions),
    ]


def test_statement_of_the_doctor_rests_on_no_private_source():
    assert [(s.entry, source) for s, source in without_a_source(FOUND)] == []


def test_statements_of_the_doctor_past_their_day_are_requested():
    assert outdated(MATRIX, today="2026-11-22", others=FOUND).aged == ()
    alone, both = outdated(MATRIX, today="2099-01-01").aged, outdated(MATRIX, today="2099-01-01", others=FOUND).aged
    assert len(both) - len(alone) == len(FOUND)
