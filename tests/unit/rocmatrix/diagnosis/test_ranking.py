"""What names the cause comes before what follows from it, and what the machine is counts."""

from rocmatrix.diagnosis import signature
from rocmatrix.diagnosis.matcher import Match
from rocmatrix.diagnosis.ranking import HostContext, fit, rank, suits
from rocmatrix.matrix.statement import Selector
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, best, ranked

BY_ID = {one.id: one for one in SIGNATURES}
OOM = "HIP out of memory. Tried to allocate 1.08 GiB."
FRAGMENTED = f"{OOM} Of the allocated memory 61 GiB is allocated, and 138 MiB is reserved by PyTorch but unallocated."


def ids(log, here=None):
    return [match.signature.id for match in ranked(log, here).failures]


def test_cause_comes_before_symptom_and_aftermath_wherever_it_stands():
    log = (
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
        "RuntimeError: HIP error: invalid device function\n"
    )
    assert ids(log) == ["hip-invalid-device-function", "nccl-watchdog-timeout", "torchrun-child-failed"]


def test_refining_cause_hides_the_one_it_refines():
    assert ids(FRAGMENTED) == ["hip-oom-fragmentation"]
    assert ids(OOM) == ["hip-out-of-memory"]


def test_refinement_of_a_refinement_hides_both():
    assert ids("c++: fatal error: Killed signal terminated program cc1plus\nERROR: Failed building wheel for x\n") == [
        "build-killed-for-memory"
    ]


def test_cause_known_on_this_card_comes_first_of_two():
    log = BY_ID["hip-shared-object-init-failed"].sample + "\n" + BY_ID["hip-no-kernel-image"].sample
    assert ids(log, HostContext(architecture="gfx1036"))[0] == "hip-shared-object-init-failed"
    assert ids(log, HostContext(architecture="gfx90a"))[0] == "hip-no-kernel-image"


def test_cause_known_with_this_torch_comes_first_of_two():
    log = BY_ID["torchao-torch-int1"].sample + "\n" + BY_ID["triton-missing"].sample
    assert ids(log, HostContext(torch="2.5.1"))[0] == "torchao-torch-int1"
    assert ids(log, HostContext(torch="2.9.1"))[0] == "triton-missing"


def test_equal_causes_are_ordered_by_fixed_text_and_then_by_line():
    log = "IndexError: index out of range in self\nExpected all tensors to be on the same device\n"
    assert ids(log) == ["tensors-on-different-devices", "index-out-of-range"]


def test_family_comes_after_symptoms_that_are_known_in_detail_and_before_aftermath():
    log = (
        "[drm:vcn_v2_0_start [amdgpu]] *ERROR* VCN decode not responding\n"
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=5, emitted seq=7\n"
        "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n"
    )
    assert ids(log) == ["amdgpu-ring-timeout", "amdgpu-error-family", "amdgpu-gpu-reset"]
    lighter, family = BY_ID["amdgpu-ring-timeout"], BY_ID["amdgpu-error-family"]
    assert min(one.weight for one in lighter.patterns) < max(one.weight for one in family.patterns)


def test_family_is_left_out_where_another_signature_knows_its_line():
    assert ids("RuntimeError: HIP error: invalid device function\n") == ["hip-invalid-device-function"]
    assert ids("RuntimeError: HIP error: a text of tomorrow\n") == ["hip-error-family"]


def test_family_is_shown_where_it_refines_what_else_knows_its_line():
    crashed = (
        "received signal SIGSEGV, Segmentation fault.\n"
        "0x00007fff8a1b2c3d in f () from /opt/rocm/lib/librocsparse.so.1\n"
    )
    assert ids(crashed) == ["crash-in-named-library"]
    assert BY_ID["crash-in-named-library"].family
    assert "process-crashed" in BY_ID["crash-in-named-library"].refines


def test_failures_are_no_remarks():
    found = ranked(OOM)
    assert (len(found.failures), found.remarks) == (1, ())


def test_notes_are_no_failures():
    found = ranked(BY_ID["amdgpu-ids-missing"].sample)
    assert found.failures == ()
    assert [match.signature.id for match in found.remarks] == ["amdgpu-ids-missing"]


def test_unknown_fact_counts_neither_for_nor_against():
    bound = BY_ID["hip-shared-object-init-failed"]
    assert fit(bound, HostContext()) == 0
    assert fit(bound, HostContext(architecture="gfx1102")) == 1
    assert fit(bound, HostContext(architecture="gfx942")) == -1
    assert fit(BY_ID["rccl-segfault-msccl"], HostContext(rocm="6.4")) == 1
    assert fit(BY_ID["rccl-segfault-msccl"], HostContext(rocm="7.2")) == -1


def test_empty_input_gives_no_cause():
    assert best("all is well\n") is None


def test_kinds_all_have_a_signature():
    assert {one.kind for one in SIGNATURES} == {"cause", "symptom", "aftermath", "degraded", "note"}
    assert signature.FAILURES == ("cause", "symptom", "aftermath")


def test_cause_seen_with_another_card_of_the_host_is_not_ruled_out():
    seen_on_gfx1036 = BY_ID["hip-shared-object-init-failed"]
    fits = [
        fit(seen_on_gfx1036, HostContext(architecture=own, others=others))
        for own, others in (("gfx1036", ()), ("gfx90a", ("gfx1036",)), ("gfx90a", ()))
    ]
    assert fits == [1, 0, -1]


def test_exception_comes_before_the_launcher_that_reports_an_end_and_after_a_known_symptom():
    error = "Traceback (most recent call last):\n  File \"a.py\", line 9, in <module>\nKeyError: 'labels'\n"
    report = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    assert ids(error + report) == ["python-key-missing", "torchrun-child-failed"]
    assert ids(error + "srun: error: node7: task 0: Exited with exit code 1\n")[0] == "python-key-missing"
    assert (
        ids(error + "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3\n")[0] == "nccl-watchdog-timeout"
    )


PLAIN = {"refines": [], "leads": [], "family": False, "uncaught": False, "when": Selector(), "kind": "cause"}


def synthetic(name, *, line=1, weight=1, **fields):
    """Return a match of a SYNTHETIC signature, each on a line of its own."""
    made = BY_ID["hip-out-of-memory"].model_copy(update=PLAIN | fields | {"id": name})
    return Match(signature=made, line=line, text="SYNTHETIC", weight=weight)


def failures(*matches):
    return [match.signature.id for match in rank(matches, HostContext()).failures]


def test_state_from_which_others_follow_comes_first_though_its_kind_comes_last():
    state = synthetic("state", line=2, kind="degraded", leads=["effect"])
    assert failures(synthetic("effect"), state, synthetic("other", line=3, weight=9)) == ["state", "other", "effect"]
    assert failures(state) == []  # nothing follows from it


def test_remarks_stand_in_the_order_of_their_kinds_and_lines():
    notes = [synthetic("second", line=2, kind="note"), synthetic("first", kind="note")]
    found = rank([*notes, synthetic("state", line=3, kind="degraded")], HostContext())
    assert [match.signature.id for match in found.remarks] == ["state", "first", "second"]


def test_exception_of_any_kind_comes_after_each_symptom_and_a_family_of_causes_before():
    error = synthetic("error", line=1, weight=9, family=True, uncaught=True)
    broad = synthetic("broad", line=2, kind="symptom", family=True)
    known = synthetic("known", line=3, kind="symptom")
    cause = synthetic("cause", line=4, family=True)
    after = synthetic("after", line=5, weight=9, kind="aftermath")
    assert failures(error, after, broad, known, cause) == ["cause", "known", "broad", "error", "after"]


def test_signature_that_is_hidden_hides_those_it_refines():
    chain = [synthetic("a", refines=["b"]), synthetic("b", line=2, refines=["c"]), synthetic("c", line=3)]
    assert failures(*chain) == ["a"]


def test_axes_that_suit_are_counted():
    when = Selector(architectures=["gfx1100"], torch=">=2.5,<2.8", rocm="<6.4")
    assert suits(when, HostContext(architecture="gfx1100", torch="2.7.1", rocm="6.3")) == 3
    assert suits(when, HostContext(torch="2.7.1", rocm="6.3")) == 2
    assert suits(when, HostContext(architecture="gfx1100", torch="2.7.1", rocm="6.4")) == -1
