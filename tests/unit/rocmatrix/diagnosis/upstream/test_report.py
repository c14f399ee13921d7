"""The report to a project: its tracker, its questions, what log and host state, and nothing that names a person."""

import dataclasses

import pytest

from rocmatrix.diagnosis import diagnosis
from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.diagnosis.upstream import excerpt, facts, report, trackers
from rocmatrix.host import hardware
from tests.fixtures.cells import MATRIX
from tests.unit.rocmatrix.diagnosis.known import ROOT, SIGNATURES

KNOWN = trackers.load(ROOT)
FAULT = "RuntimeError: HIP error: invalid device function\n"


def reported(log, host=None):
    programs = trackers.Programs(KNOWN)
    found = diagnosis.diagnose(
        programs.watched([log.encode()]), name="a.log", signatures=SIGNATURES, here=HostContext(), matrix=MATRIX
    )
    quoted = excerpt.excerpt([log.encode()], found.best.line if found.best else None)
    best = found.best
    fitting = trackers.chosen(
        KNOWN, line=best.text if best else "", named=programs.named, signature=best.signature if best else None
    )
    stated = facts.of_log("\n".join((*quoted.head, *quoted.quoted)), found, MATRIX.architectures)
    return report.report(found, fitting, {**(host or {}), **stated}, quoted)


@pytest.mark.parametrize(
    ("log", "address"),
    [
        (f"INFO [vllm/engine.py:1] x\n{FAULT}", "vllm-project/vllm"),
        (f"msg=\"starting llama runner\" source=ollama\nggml_cuda_init: x\n{FAULT}", "ollama/ollama"),
        (f"ggml_cuda_init: found 1 ROCm devices:\n{FAULT}", "ggml-org/llama.cpp"),
        (f"** ComfyUI startup time\n{FAULT}", "comfyanonymous/ComfyUI"),
        ("[  1.0] amdgpu 0000:03:00.0: amdgpu: Fatal error during GPU init\n", "drm/amd"),
        (f"/opt/venv/_rocm_sdk_core/lib/x.so\n{FAULT}", "ROCm/TheRock"),
        (FAULT, "ROCm/ROCm"),
        ("torch._inductor.exc.InductorError: LoweringException: x\nall of torch.compile failed\n", "pytorch/pytorch"),
    ],
)  # fmt: skip
def test_log_of_a_project_is_reported_to_it(log, address):
    assert f"/{address}/" in reported(log).split("\n")[1]


def test_report_asks_what_the_form_asks_and_fills_what_the_log_states():
    log = (
        "greg@box:~/x$ python train.py --lr 1\nPyTorch version: 2.9.1+rocm6.4\nGPU arch: gfx1100\n"
        "/home/greg/venv/lib/python3.12/site-packages/x.py at 10.3.68.117\n" + FAULT
    )
    text = reported(log)
    for question in next(one for one in KNOWN if one.id == "rocm").asks:
        assert f"\n## {question.label}\n" in text
    assert "## ROCm version\n\n6.4 (from the log)" in text
    assert "gfx1100 (" in text
    assert "python train.py --lr 1 (from the log)" in text
    assert "## CPU\n\nunknown: run `grep -m1" in text
    assert "Known there already, read these first: ROCm/legacy-rocm-build#5668" in text
    assert "```text\ngreg" not in text
    for name in ("greg", "box:", "10.3.68.117"):
        assert name not in text
    assert FAULT.strip() in text


def test_report_of_a_known_cause_states_when_to_send_it():
    log = "OSError: [Errno 28] No space left on device\n"
    assert "Report it only where this did not help" in reported(log)


def test_report_without_a_known_failure_quotes_the_first_error():
    text = reported("step 1\n" * 40 + "worker 3: very strange error 77\n" + "step 2\n" * 40)
    assert "No known failure" not in text
    assert "no known failure was found in it" in text
    assert "From line 29 of the log:" in text
    assert "very strange error 77" in text


def test_facts_of_a_host_without_a_card_are_left_out(tmp_path):
    none = hardware.detect(tmp_path)
    assert facts.of_host(none, MATRIX.architectures, tmp_path) == {}
    card = hardware.Card(
        index=0, node=1, gfx="gfx1100", integrated=False, memory_bytes=1, compute_units=1, unique_id=None, gpu_id=None,
        device_id=None, pci_address=None, render_minor=None, render=None, hive_id=None,
    )  # fmt: skip
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('NAME=x\nPRETTY_NAME="Debian 13"\n')
    stated = facts.of_host(dataclasses.replace(none, cards=(card,), kernel="6.12"), MATRIX.architectures, tmp_path)
    assert stated["system"] == ("Debian 13", "of this host")
    assert stated["cards"][0].startswith("1 x gfx1100 (")
    assert "processor" not in stated


@pytest.mark.parametrize(
    "line", ["$ " + "a=b " * 5000, "python " * 5000, "\x1b[31m" * 5000, "vllm version version " * 999]
)
def test_hostile_line_is_quoted_in_bounded_length(line):
    assert len(reported(line + "\n" + FAULT)) < 9000


@pytest.mark.parametrize(("line", "fence"), [("```", "````"), ("  ````python", "`````"), ("`x`", "```")])
def test_backticks_of_the_log_do_not_end_its_block(line, fence):
    rows = reported(f"{line}\n{FAULT}").splitlines()
    start = rows.index(f"{fence}text")
    assert rows[rows.index(fence, start) - 1] == FAULT.strip()


def test_backticks_of_the_failure_do_not_end_its_code():
    fault = "RuntimeError: HIP error: invalid device function in `f`"
    assert f"`` {fault} `` (line 1 of the log)" in reported(fault + "\n")
