"""Every statement has sources that a reader can open again, an age, and a day on which it is looked at."""

import pytest

from rocmatrix.matrix.resolver.freshness import outdated
from rocmatrix.matrix.resolver.statements import StatementAt, statements
from rocmatrix.matrix.statement import UNOPENABLE, Evidence
from tests.fixtures.cells import MATRIX
from tests.fixtures.sources import without_a_source

FOUND = list(statements(MATRIX))


def test_statements_include_every_rule_companion_release_list_and_cell():
    entries = {(s.file, s.entry) for s in FOUND}
    assert {("matrix/rules.yaml", rule.id) for rule in MATRIX.rules} <= entries
    assert {("matrix/companions.yaml", rule.id) for c in MATRIX.companions for rule in c.rules} <= entries
    assert {("matrix.yaml", name) for name in MATRIX.cell_names} <= entries
    assert {("matrix/architectures.yaml", gfx) for gfx in MATRIX.architectures} <= entries
    assert {entry for file, entry in entries if file == "matrix/support.yaml"} == {
        f"ROCm {', '.join(table.rocm)}" for table in MATRIX.support
    }
    assert sum(s.file == "matrix/releases.yaml" for s in FOUND) == 2 * len(MATRIX.series)
    assert sum(s.claim for s in FOUND) == sum(rule.claim is not None for rule in MATRIX.rules)


def test_statements_rest_on_no_private_source():
    assert [(s.file, s.entry, source) for s, source in without_a_source(FOUND)] == []


def test_hashes_rest_on_no_private_source():
    assert [source for hashes in MATRIX.hashes for source in hashes.sources if UNOPENABLE.search(source)] == []


@pytest.mark.parametrize(
    "source",
    ["an unnamed public file", "an unnamed public file (NaN)", "a public Dockerfile pin (digest)", "community notes",
     "a public how-to for an MI50", "A public document", "general knowledge of the product line",
     "Triton documentation", "public Dockerfiles found by the digest itself", "AMD Ryzen documentation 7.0.2",
     "docs.pytorch.org", "AMD Radeon documentation 6.4.1 (multi-GPU)", "a document of an owner",
     "the metadata of peft 0.21.2"],
)  # fmt: skip
def test_source_without_a_name_is_found(source):
    evidence = Evidence(sources=["ROCm/ROCm#1", source], confidence="reported", date="2026-11-22")
    statement = StatementAt(file="f", entry="e", says="s", evidence=evidence, expires="2027-01-01")
    assert [found for _, found in without_a_source([statement])] == [source]
    quoted = StatementAt(file="f", entry="e", says="s", evidence=evidence, expires="2027-01-01", claim=True)
    assert list(without_a_source([quoted])) == []  # what is refuted may come from anywhere


@pytest.mark.parametrize(
    "source",
    [
        "ROCm/ROCm#4437",
        "public lock files (matrix/wheels.yaml names them)",
        "docs.pytorch.org/docs/stable/notes/cuda.html",
        "peft 0.21.2: METADATA of its wheel",
        "a first-hand report by an MI50 owner (given to this project; not public)",
    ],
)
def test_source_with_a_name_passes(source):
    assert not UNOPENABLE.search(source)


def test_age_and_expiry_follow_the_day_that_is_given():
    statement = next(s for s in FOUND if s.evidence.date == "2026-11-22")
    assert statement.age_days("2026-12-22") == 30
    assert not statement.expired(statement.expires)
    assert statement.expired("2099-01-01")


def test_statements_past_their_day_are_requested_and_not_rules_alone():
    assert outdated(MATRIX, today="2026-11-22").aged == ()
    every = outdated(MATRIX, today="2099-01-01").aged
    ids = {rule.id for rule in MATRIX.rules}
    assert {(s.file, s.entry) for s in every} == {(s.file, s.entry) for s in FOUND if s.entry not in ids}
    some = outdated(MATRIX, today="2027-03-01").aged
    assert {s.entry for s in some} >= {"bitsandbytes-4bit-gfx1100-rocm-6.4"}
