"""Short pastes of commands: on a machine where all is well none names a cause, however near its words are."""

import pytest
import yaml

from rocmatrix.runtime.paths import ROOT
from tests.unit.rocmatrix.diagnosis.known import best, ranked

KINDS = yaml.safe_load((ROOT / "benchmarks/diagnosis_cases/healthy.yaml").read_text(encoding="utf-8"))
PASTES = [text for kind, texts in KINDS.items() if kind.startswith("transcripts") for text in texts]


@pytest.mark.parametrize("text", PASTES, ids=lambda text: text.splitlines()[0][:40])
def test_paste_of_a_healthy_machine_names_no_cause(text):
    assert [match.signature.id for match in ranked(text.replace("{n}", "7")).failures] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "$ ls -l /dev/kfd\ncrw-rw---- 1 root render 238, 0 Sep  2 15:45 /dev/kfd\n$ groups\nuser adm sudo video\n",
            "kfd-group-not-held",
        ),
        ("$ rocm_agent_enumerator\ngfx000\n", "rocminfo-processor-alone"),
        ("torch 2.6.0+rocm6.2.4\ntorchvision 0.20.1+rocm6.2\n", "torch-companion-of-another-release"),
        ("$ clinfo -l\nPlatform #0: AMD Accelerated Parallel Processing\n", "opencl-no-device"),
        ("$ kubectl describe node a | grep amd.com\n  amd.com/gpu:  0\n  amd.com/gpu:  0\n", "k8s-cards-unhealthy"),
        ("Name: qwen3:4b 2.9 GB 100% CPU 4096\n", "ollama-model-on-processor"),
    ],
)
def test_paste_that_lacks_what_a_healthy_one_has_names_it(text, found):
    assert best(text) == found
