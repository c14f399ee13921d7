"""Which tracker a failure goes to."""

from rocmatrix.diagnosis.upstream import trackers
from tests.unit.rocmatrix.diagnosis.known import ROOT


def test_tracker_is_chosen_by_line_then_program_and_is_never_missing():
    known = trackers.load(ROOT)
    assert trackers.chosen(known, line="", named=(), signature=None)[0].id == "rocm"
    assert trackers.chosen(known, line="", named=("vllm",), signature=None)[0].id == "vllm"
    assert trackers.chosen(known, line="amdgpu 0000:03:00.0: x", named=("vllm",), signature=None)[0].id == "kernel"
