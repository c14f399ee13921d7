"""`--compile on` in the CPU image: Inductor's C++, built by the image's compiler and kept on the cache volume."""

import json

import pytest

pytestmark = pytest.mark.container

COUNT = """
import json, torch
from torch._dynamo.utils import counters
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
with torch.no_grad():  # one graph: its code takes the compiler long enough
    torch.compile(model, fullgraph=True)(torch.ones(4, 8))
found = counters["inductor"]
print(json.dumps({name: found[name] for name in ("fxgraph_cache_hit", "fxgraph_cache_miss")}))
"""
TRAIN = ["train", "--output=/training", "--run=r", "--epochs=1", "--data-fraction=0.1", "--compile=on"]


def test_model_is_compiled_and_trains_in_the_image(cpu_image, run, tmp_path):
    ended = run(cpu_image.tag, *TRAIN)
    assert ended.status == 0, ended.stderr
    (decision,) = [line for line in ended.lines if line.get("event") == "compile"]
    assert decision["use"] is True
    assert decision["trial"]["compile_s"] > 0
    assert json.loads((tmp_path / "r" / "metadata.json").read_text())["config"]["compile"] == "on"


def test_training_without_its_compiler_is_refused(cpu_image, run):
    ended = run(cpu_image.tag, *TRAIN, environment={"PATH": "/opt/venv/bin", "HOME": "/tmp"})
    assert ended.status != 0
    assert "RM567" in ended.stdout


def test_promised_compile_that_cannot_run_fails_smoke(cpu_image, run):
    broken = {"CXX": "/nonexistent/g++", "HOME": "/tmp", "ROCMATRIX_PROMISES": "compile"}
    ended = run(cpu_image.tag, "smoke", "--probe=compile", environment=broken)
    assert ended.status == 1
    assert "This image promises it" in ended.lines[0]["summary"]


def test_second_container_takes_what_the_first_compiled_from_the_volume(client, cpu_image, tmp_path):
    volume = client.volumes.create()
    try:
        outputs = [_compile(client, cpu_image.tag, volume.name) for _ in range(2)]
    finally:
        volume.remove(force=True)
    assert outputs[0]["fxgraph_cache_hit"] == 0
    assert outputs[0]["fxgraph_cache_miss"] >= 1
    assert outputs[1]["fxgraph_cache_hit"] >= 1
    assert outputs[1]["fxgraph_cache_miss"] == 0


def _compile(client, image, volume):
    output = client.containers.run(
        image, ["-c", COUNT], entrypoint="python", remove=True, user="12345:12345", read_only=True,
        network_mode="none", environment={"USER": "trainer", "OMP_NUM_THREADS": "1"},
        tmpfs={"/tmp": "rw,noexec,nosuid,nodev,mode=1777"}, volumes={volume: {"bind": "/cache", "mode": "rw"}},
    )  # fmt: skip
    return json.loads(output.decode().splitlines()[-1])
