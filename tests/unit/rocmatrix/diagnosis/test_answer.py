"""A diagnosis in words: what stands first, how much of the rest is shown, and what doubts it."""

from dataclasses import replace

from benchmarks.diagnose_cases import diagnosed
from rocmatrix.diagnosis import answer, project_errors
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES

KNOWN = (*SIGNATURES, *project_errors.signatures())
CAUSE = "error: externally-managed-environment\n"
HARMLESS = "/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory\n"


def heads(lines):
    return [line.split(":")[0].strip() for line in lines]


def test_log_without_a_failure_states_how_much_was_read_and_what_to_do():
    lines = answer.text_lines(diagnosed("step 1 loss 0.5\nstep 2 loss 0.4\n", KNOWN))
    assert "nothing here explains a failure (2 lines read)" in lines[0]
    assert lines[1:] == [f"  hint:   {answer.NOTHING}"]


def test_remark_alone_is_printed_whole_and_not_once_more_below():
    found = diagnosed(HARMLESS, KNOWN)
    lines = answer.text_lines(found)
    assert lines[0].endswith("(1 lines read); reported was:")
    assert sum(found.ranked.remarks[0].signature.id in line for line in lines) == 1
    assert {"cause", "remedy", "hint", "source"} <= {*heads(lines)}


def test_remark_next_to_a_failure_is_one_line():
    found = diagnosed(HARMLESS + CAUSE, KNOWN)
    lines = answer.text_lines(found)
    assert lines[0].startswith(found.best.signature.id)
    assert lines[-1].startswith(f"  {found.ranked.remarks[0].signature.kind}:")


def test_others_are_shown_up_to_a_number_and_lines_of_one_are_counted():
    found = diagnosed(CAUSE * 3, KNOWN)
    assert "line 1 and 2 more" in answer.text_lines(found)[1]
    many = replace(found, ranked=replace(found.ranked, failures=found.ranked.failures[:1] * 9))
    assert heads(answer.text_lines(many)).count("also") == answer.OTHERS_SHOWN


def test_signature_seen_with_another_card_is_doubted():
    found = diagnosed(CAUSE, KNOWN)
    when = found.best.signature.when.model_copy(update={"architectures": ["gfx906"], "rocm": ">=6.0"})
    other = replace(found.best, signature=found.best.signature.model_copy(update={"when": when}))
    here = replace(found.here, architecture="gfx1100")
    found = replace(found, here=here, ranked=replace(found.ranked, failures=(other,)))
    doubt = "  doubt:  so far seen with gfx906; ROCm >=6.0, which is not what this is"
    assert doubt in answer.text_lines(found)
    assert answer.described(found)["failures"][0]["fits"] == -1


def test_plain_data_has_what_the_text_has():
    found = diagnosed(HARMLESS + CAUSE, KNOWN)
    data = answer.described(found)
    assert (data["lines"], data["bytes"]) == (2, len(HARMLESS + CAUSE))
    (first, *_) = data["failures"]
    assert first["id"] == found.best.signature.id and first["line"] == 2 and first["cause"] == found.best.cause
    assert first["next"] == answer.next_step(found.best.signature)
    assert [row["id"] for row in data["remarks"]] == [row.signature.id for row in found.ranked.remarks]
