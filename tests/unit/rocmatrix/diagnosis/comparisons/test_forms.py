"""Every shipped comparison holds in its sample, not in its healthy one, and names signatures and values that exist."""

import time
from functools import cache
from pathlib import Path

import pytest
import yaml

from rocmatrix.diagnosis import diagnosis
from rocmatrix.diagnosis.comparisons import condition, forms
from rocmatrix.diagnosis.comparisons.reading import Reader
from rocmatrix.diagnosis.machine import compared_values
from rocmatrix.diagnosis.machine.log_environment import Values
from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.matrix.loading import load as matrix_file
from tests.unit.rocmatrix.diagnosis.known import COMPARISONS, ROOT, SIGNATURES, scanner

KNOWN = COMPARISONS
HEALTHY = Path(ROOT) / "benchmarks" / "diagnosis_cases" / "healthy_transcripts.yaml"
SECONDS = 2.0


@cache
def architectures():
    return matrix_file.load(ROOT).architectures


def compared(log, here=None):
    """The rules that hold for a text, by id."""
    reader = Values(KNOWN)
    for _ in reader.watched([log.encode()]):
        pass
    return compared_values.of(reader, here or HostContext(), architectures())


def found(log, here=None):
    """The diagnosis of a text with all signatures and comparisons."""
    rules = compared(log, here)
    scanned = scanner().scan([log.encode()])
    return diagnosis.concluded(
        scanned, name="a test", here=HostContext(), matrix=None, failed_checks=frozenset(), compared=rules
    )


def test_sample_holds_and_its_healthy_twin_does_not():
    held = {rule.id: (rule.id in compared(rule.sample), rule.id in compared(rule.healthy)) for rule in KNOWN.rules}
    assert {name: both for name, both in held.items() if both != (True, False)} == {}


def test_sample_of_a_certain_rule_is_the_first_answer():
    certain = [rule for rule in KNOWN.rules if rule.kind == "cause" and rule.proves == "failure"]
    first = {rule.id: found(rule.sample).best.signature.id for rule in certain}
    assert {name: other for name, other in first.items() if name != other} == {}


def test_healthy_transcript_names_no_cause():
    rows = yaml.safe_load(HEALTHY.read_text(encoding="utf-8"))
    answers = {rule.id for rule in KNOWN.rules if rule.shown}  # others make a listed cause more likely, where one is
    named = {row["about"]: (answers & {*seen.compared}, seen.best) for row in rows if (seen := found(row["log"]))}
    assert len(rows) > 29
    assert {about: rules for about, (rules, best) in named.items() if rules or best} == {}


def test_rules_and_listed_causes_name_one_another_by_ids_that_exist():
    ids = {signature.id for signature in SIGNATURES}
    rules = {rule.id for rule in KNOWN.rules}
    named = {name for one in SIGNATURES for cause in one.causes for name in cause.compared}
    assert named <= rules
    assert {name for rule in KNOWN.rules for name in rule.refines} <= ids
    assert rules.isdisjoint(ids)
    assert not [rule.id for rule in KNOWN.rules for cause in rule.causes if cause.signs or cause.hints]


def test_value_without_a_rule_is_none():
    texts = [condition.parse(text) for rule in KNOWN.rules for text in (*rule.holds, *rule.except_where)]
    used = {name for one in texts for name in (one.left, one.right)}
    assert set(KNOWN.values) <= used


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"values": {"a_b": {"kind": "word", "says": "s", "reads": [{"line": "(?P<value>\\w+)"}]}}}, "no fixed text"),
        ({"values": {"a_b": {"kind": "word", "says": "s", "reads": [{"line": "fixed"}]}}}, "no group `value`"),
        ({"values": {"a_b": {"kind": "word", "says": "s", "reads": [{"command": "lsmod"}]}}}, "a form has `line`"),
        ({"values": {"a_b": {"kind": "word", "says": "s", "reads": [{"line": "(?P<value>(a+)+)"}]}}}, "inside another"),
    ],
)
def test_form_that_cannot_be_used_is_refused(change, why):
    with pytest.raises(ValueError, match=why):
        forms.Comparisons.model_validate({"values": {}, "rules": [], **change})


def test_rule_on_a_value_that_is_none_is_refused():
    rule = KNOWN.rules[0].model_dump() | {"holds": ["running_kernl is known"]}
    with pytest.raises(ValueError, match="running_kernl"):
        forms.Comparisons.model_validate({"values": {}, "rules": [rule]})


def test_statement_of_each_rule_has_its_evidence():
    assert {one.entry for one in forms.statements(ROOT)} == {rule.id for rule in KNOWN.rules}


def test_hostile_lines_take_bounded_time():
    texts = sorted({text for form in KNOWN.values.values() for read in form.reads for text in read.literals})
    joined = " ".join(texts)
    hostile = (
        "\n".join(f"{text} x" for text in texts) * 30,
        joined * 400,
        "$ rocminfo\n$ uname -r\n$ groups\n" * 3000,
        "groups\na b c\n" * 3000,
        ("Name:" + "\t" * 3900 + "x\n") * 30,
        ("shm " + "1 " * 1900 + "% /dev/shm\n") * 30,
        ("a.@:~/" * 600 + " uname -r\n") * 30,
        "\n".join((f"{text} " + text * 500)[:3900] for text in texts),
    )
    began = time.process_time()
    for log in hostile:
        Reader(KNOWN.values).read(log.encode())
    assert time.process_time() - began < SECONDS
