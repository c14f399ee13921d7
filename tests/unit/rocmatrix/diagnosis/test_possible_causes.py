"""A symptom's causes come in the order of their support by log, host and versions."""

from rocmatrix.diagnosis import diagnosis
from rocmatrix.diagnosis.ranking import HostContext
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES

NO_CARD = "RuntimeError: No HIP GPUs are available\n"


def found(log, here=None, failed=()):
    return diagnosis.diagnose(
        [log.encode()], name="a test", signatures=SIGNATURES, here=here or HostContext(), failed_checks=failed
    )


def first(log, **more):
    told = found(log, **more)
    return diagnosis.possibilities(told, told.best)[0]


def test_symptom_alone_does_not_decide_among_its_causes():
    told = found(NO_CARD)
    assert told.best.signature.id == "no-hip-gpus-available"
    assert not any(row.decided for row in diagnosis.possibilities(told, told.best))
    assert "likely:" not in "\n".join(diagnosis.text_lines(told))


def test_sign_in_the_log_brings_its_cause_first_with_its_line():
    row = first("CUDA_VISIBLE_DEVICES=7\n" + NO_CARD)
    assert "variable hides every card" in row.says
    assert (row.decided, row.why) == (True, "line 1 shows it.")


def test_failed_check_of_the_host_brings_its_cause_first():
    row = first(NO_CARD, failed={"D110"})
    assert "device nodes are closed" in row.says
    assert row.why == "doctor's check D110 fails on this host."


def test_cause_known_on_another_card_comes_last():
    fault = "Memory access fault by GPU node-1 on address 0x7f00. Reason: Page not present or supervisor privilege.\n"
    assert "Firmware of the card" in first(fault, here=HostContext(architecture="gfx1151")).says
    rows = diagnosis.possibilities(told := found(fault, HostContext(architecture="gfx90a")), told.best)
    assert "Firmware of the card" in rows[-1].says


def test_root_cause_leads_though_it_only_degrades():
    bar = "pci 0000:25:00.0: BAR 7: no space for [mem size 0x00100000 64bit]\n"
    probe = "amdgpu: probe of 0000:09:00.0 failed with error -12\n"
    assert [match.signature.id for match in found(probe + bar).ranked.failures] == [
        "pci-bar-assign-failed",
        "amdgpu-no-address-space",
    ]
    alone = found(bar).ranked
    assert alone.failures == ()
    assert [match.signature.id for match in alone.remarks] == ["pci-bar-assign-failed"]


def test_errno_divides_matches_of_one_line():
    assert found("amdgpu: probe of 0000:09:00.0 failed with error -12\n").best.signature.id == "amdgpu-no-address-space"
    assert found("amdgpu: probe of 0000:09:00.0 failed with error -22\n").best.signature.id == "amdgpu-probe-invalid"


def test_causes_and_tests_are_in_the_data_for_programs():
    told = diagnosis.described(found(NO_CARD))["failures"][0]
    assert len(told["causes"]) > 3
    assert all(row["says"] and row["test"] for row in told["causes"])
