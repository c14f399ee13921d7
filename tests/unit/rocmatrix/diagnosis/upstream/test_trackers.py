"""The tracker of a failure: by the kernel's line, the program that a log names, or the area."""

from types import SimpleNamespace

import pytest

from rocmatrix.diagnosis.upstream import trackers
from rocmatrix.diagnosis.upstream.trackers import Programs, chosen
from rocmatrix.runtime.paths import ROOT

KNOWN = trackers.load(ROOT)


def ids(line="", named=(), signature=None):
    return [one.id for one in chosen(KNOWN, line=line, named=named, signature=signature)]


def test_failure_without_any_trace_has_the_last_tracker():
    assert ids() == [KNOWN[-1].id]


def test_trackers_have_ids_of_their_own_and_none_is_returned_twice():
    assert len({one.id for one in KNOWN}) == len(KNOWN)
    found = ids(
        named=[one.id for one in KNOWN], signature=SimpleNamespace(area=KNOWN[-1].areas[0] if KNOWN[-1].areas else "")
    )
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("one", [one for one in KNOWN if not one.areas], ids=lambda one: one.id)
def test_program_that_the_log_names_comes_before_the_last_resort(one):
    assert ids(named=[one.id])[0] == one.id


def test_kernels_line_comes_before_programs_of_the_log_where_its_area_is_the_drivers_too():
    found = ids("amdgpu 0000:03:00.0: ring timeout", ["ollama"], SimpleNamespace(area="driver"))
    assert found == ["kernel", "ollama", KNOWN[-1].id]


@pytest.mark.parametrize("one", [one for one in KNOWN if one.areas], ids=lambda one: one.id)
def test_area_of_the_failure_leads_to_its_tracker(one):
    assert one.id in ids(signature=SimpleNamespace(area=one.areas[0]))


def test_programs_are_found_in_any_letter_case_and_once_while_blocks_pass_unchanged():
    one = next(one for one in KNOWN if not one.areas)
    blocks = [b"nothing", one.programs[0].upper().encode(), one.programs[0].encode()]
    programs = Programs([one])
    assert list(programs.watched(blocks)) == blocks
    assert programs.named == [one.id]
