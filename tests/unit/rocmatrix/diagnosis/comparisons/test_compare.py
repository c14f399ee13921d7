"""Rules judged on a log, on a host, and on both together."""

from dataclasses import replace

import pytest

from rocmatrix.diagnosis import diagnosis
from rocmatrix.diagnosis.comparisons.compare import Facts
from rocmatrix.diagnosis.comparisons.reading import Reading
from rocmatrix.diagnosis.ranking import HostContext
from tests.unit.rocmatrix.diagnosis.comparisons.test_forms import compared, found

OTHER_KERNEL = "compared-dkms-other-kernel"
DKMS = "$ dkms status\namdgpu/6.7.0-1787201.22.04, 6.8.0-40-generic, x86_64: installed\n"
KERNEL = "$ uname -r\n6.8.0-45-generic\n"
NOT_LOADED = "ROCk module is NOT loaded, possibly no GPU devices\n"
HERE = HostContext(values={"running_kernel": ("6.8.0-45-generic",)})


def reading(text, line=1, section=0):
    return Reading(text=text, line=line, shown=text, section=section)


def test_answer_states_both_values_and_where_they_are():
    best = found(KERNEL + DKMS + NOT_LOADED).best
    assert best.signature.id == OTHER_KERNEL
    assert best.title == "amdgpu is built for 6.8.0-40-generic and not for 6.8.0-45-generic"
    assert best.line == 2
    assert "6.8.0-45-generic | amdgpu/6.7.0" in best.text


def test_value_of_the_host_proves_nothing_with_one_of_the_log():
    one = compared(DKMS + NOT_LOADED, HERE)[OTHER_KERNEL]
    assert (one.source, one.is_certain, one.is_answer) == ("both", False, False)
    assert "this host" in one.why


def test_values_of_the_host_alone_show_a_listed_cause_and_are_no_answer():
    here = HostContext(values={"override_gfx": ("10.3.0",), "card_gfx": ("gfx1100",)})
    one = compared("Memory access fault by GPU node-1\n", here)["compared-override-generation"]
    assert (one.source, one.is_certain, one.is_answer) == ("host", True, False)
    seen = found("Memory access fault by GPU node-1 (Agent handle: 0x55)\n", here)
    assert seen.best.signature.id == "gpu-memory-access-fault"
    first = diagnosis.possibilities(seen, seen.best)[0]
    assert "HSA_OVERRIDE_GFX_VERSION" in first.says
    assert first.decided
    assert first.why == "HSA_OVERRIDE_GFX_VERSION=10.3.0 names another generation than the card, gfx1100 (this host)."


def test_values_of_two_machines_make_a_listed_cause_likelier_alone():
    seen = found(DKMS + NOT_LOADED, HERE)
    first = diagnosis.possibilities(seen, seen.best)[0]
    assert (first.decided, first.why) == (False, compared(DKMS + NOT_LOADED, HERE)[OTHER_KERNEL].why)


def test_value_of_the_host_excuses_nothing_in_a_log():
    here = replace(HERE, values={"agents": ("gfx1100",)})
    assert OTHER_KERNEL in compared(KERNEL + DKMS, here)
    assert OTHER_KERNEL not in compared(KERNEL + DKMS + "  Name:                    gfx1100\n", here)


def test_rule_that_is_not_shown_raises_a_listed_cause_alone():
    log = "$ python --version\nPython 3.14.2\nERROR: Could not find a version that satisfies the requirement torch"
    seen = found(f"{log} (from versions: none)\n")
    assert not seen.compared["compared-python-too-new"].is_answer
    assert seen.best.signature.id == "pip-no-matching-rocm-wheel"
    first = diagnosis.possibilities(seen, seen.best)[0]
    assert first.why == "Python 3.14 is newer than the wheels of the index (line 2)."


@pytest.mark.parametrize(
    ("kind", "rows", "count"),
    [
        ("count", [("a", 1, 0), ("b", 2, 0), ("a", 3, 0)], "2"),
        ("rows", [("GPU", 1, 0), ("GPU", 2, 0)], "2"),
        ("rows", [("GPU", 2, 1), ("GPU", 6, 5), ("GPU", 7, 5)], "2"),
    ],
)
def test_count_is_of_the_output_that_has_most(kind, rows, count):
    read = {"it": [reading(*row) for row in rows]}
    assert Facts(read=read, kinds={"it": kind}, cards=lambda _: None).texts("it") == [count]


def test_state_stands_after_a_cause_that_a_line_states():
    pair = "torch==2.7.1+rocm7.0.0rc20250805\ntorchaudio==2.8.0a0+rocm7.0.0rc20250815\n"
    assert found(pair).best.signature.id == "compared-audio-release"
    seen = found(pair + "OSError: [Errno 28] No space left on device\n")
    assert seen.best.signature.id == "no-space-left-on-device"
