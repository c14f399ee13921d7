"""The probes among genuine ROCm libraries, on a machine with no card: a verdict, not a crash.

The libraries are Debian trixie's packages: HIP 5.7, hipBLAS and rocBLAS 5.5, HSA 6.1. They are real,
and older than those of any cell. There is no torch in this image.
"""

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.container

ROOT = Path(__file__).resolve().parents[2]
TAG = "rocmatrix-test/rocm-userspace"
CONTEXT = Path(__file__).with_name("rocm-userspace")
TRAINER = {str(ROOT / "trainer"): {"bind": "/opt/rocmatrix/trainer", "mode": "ro"}}


@pytest.fixture(scope="module")
def userspace(client, trixie):
    """Build the image; its layer of 2.4 GB stays in BuildKit's cache."""
    # Uncompressed: packing and unpacking the layer takes longer than downloading it.
    argv = ["docker", "buildx", "build", "--provenance=false", "--progress=plain"]
    argv += [f"--output=type=image,name={TAG},compression=uncompressed,unpack=true"]
    argv += [f"--build-context=base=docker-image://{trixie}", str(CONTEXT)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return TAG


@pytest.fixture
def probe(userspace, run):
    def probe(*command, volumes=TRAINER):
        return run(userspace, "-m", *command, entrypoint="python3", volumes=volumes)

    return probe


def test_blas_probe_loads_the_genuine_libraries_and_reports_no_device(probe):
    ended = probe("trainer.diagnostics.probes.single.blas", "--expect", "rocm")
    (verdict,) = ended.lines
    assert ended.status == 1
    assert verdict["status"] == "no-device"
    assert "hipGetDeviceCount" in verdict["summary"]
    loaded = {check["name"]: check["detail"] for check in verdict["checks"] if check["status"] == "pass"}
    for library in ("libamdhip64", "libhipblas", "librocblas"):
        assert loaded[f"load {library}"].startswith("/usr/lib/x86_64-linux-gnu/")
    assert verdict["versions"]["hip runtime"].startswith("5.7.")
    assert verdict["versions"]["librocblas"].startswith("2.")


def test_through_the_runner_it_is_a_verdict_too(probe):
    ended = probe("trainer", "smoke", "--probe", "blas", "--expect", "rocm")
    verdict, end = ended.lines
    assert ended.status == 1
    assert verdict["status"] == "no-device"
    assert end["failures"] == {"blas": "no-device"}


def test_broken_library_is_distinguished_from_a_missing_card(probe, tmp_path):
    """Injected: a file that is no library lies over libhipblas."""
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    place = "/usr/lib/x86_64-linux-gnu/libhipblas.so.0.1"
    volumes = TRAINER | {str(broken): {"bind": place, "mode": "ro"}}
    (verdict,) = probe("trainer.diagnostics.probes.single.blas", "--expect", "rocm", volumes=volumes).lines
    assert verdict["status"] == "fail"
    (failed,) = [check for check in verdict["checks"] if check["status"] == "fail"]
    assert failed["name"] == "load libhipblas"
    assert "does not load" in failed["detail"]
