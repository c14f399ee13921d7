"""A first `./invokew train` on a bare Debian that reaches the package index and not PyTorch's own.

Debian 12 (Python 3.11) trains a model: its torch is the wheel that this machine has fetched, read-only. Debian 13
(Python 3.13) would fetch 2.7 GB, so there what is chosen, and that it can be declined, is shown, and a model is trained
with Debian's own torch, 0.2 GB.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.container

ROOT = Path(__file__).resolve().parents[2]
INSTALL = "apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-unsafe-io"
PACKAGES = f"apt-get update -q && {INSTALL} python3 python3-venv"
# As docs/training.md has it
OWN_TORCH = f"{INSTALL} python3-torch python3-numpy python3-yaml python3-tqdm"
OWN_PYTHON = (
    "python3 -m venv --system-site-packages /opt/torch && /opt/torch/bin/pip install polars safetensors zstandard"
)
# How this machine's pip reaches an index over the network; folders of this machine are not in the container.
REACH = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
SAMPLE = "--data trainer/data/sp500_vix_daily.csv"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


@contextmanager
def bare(client: Any, image: str, mounts: dict[Path, str]) -> Iterator[Any]:
    """Hand out a running container of `image` with a copy of this checkout's own files in /clone."""
    given = {name: os.environ[name] for each in REACH for name in (each, each.lower()) if name in os.environ}
    mounts = {**mounts, **({CERTIFICATES: str(CERTIFICATES)} if CERTIFICATES.is_file() else {})}
    given |= {"PIP_CERT": str(CERTIFICATES), "PIP_NO_COMPILE": "1", "DEBIAN_FRONTEND": "noninteractive"}
    container = client.containers.run(
        image,
        ["sleep", "1500"],
        detach=True,
        network_mode="host",
        extra_hosts=dict.fromkeys(("download.pytorch.org", "download-r2.pytorch.org"), "127.0.0.1"),
        environment=given,
        volumes={str(path): {"bind": place, "mode": "ro"} for path, place in mounts.items()},
    )
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout
        packed = subprocess.run(
            ["tar", "--create", "--null", "--files-from=-", "--owner=0", "--group=0"],
            cwd=ROOT, input=listed, check=True, capture_output=True,
        ).stdout  # fmt: skip
        run(container, "mkdir -p /clone")
        container.put_archive("/clone", packed)
        yield container
    finally:
        subprocess.run(["docker", "rm", "--force", container.id], check=True, capture_output=True)


def run(container: Any, command: str, **environment: str) -> tuple[int, str]:
    """Return status and output of a command, which may be silent for longer than the engine's own client waits."""
    given = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
    argv = ["docker", "exec", *given, container.id, "sh", "-c", command]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def require_index(text: str) -> None:
    if "RM402 The locked requirements could not be installed" in text:  # that of torch from its wheel is a failure
        pytest.skip(f"no package index is reached from a container: {text[-300:]}")


def test_first_train_on_debian_12_leaves_a_model_that_forecasts(client: Any, debian: str, cpu_wheels: Path) -> None:
    with bare(client, debian, {cpu_wheels: f"/clone/.rocmatrix/wheelhouse/{cpu_wheels.name}"}) as machine:
        code, text = run(machine, "cd /clone && ./invokew train --in native --epochs 2 --run first")
        require_index(text)
        assert code == 0, text
        assert "with Python 3.11" in text and "Installing the wheels of cpu-torch2.13.0 for Python 3.11" in text
        code, text = run(
            machine, "cd /clone && ./invokew predict --model TRAINING/first --output /tmp/forecasts.csv " + SAMPLE
        )
        assert code == 0, text
        kept = "cd /clone/TRAINING/first && ls model.pt model.safetensors metadata.json && wc -l < /tmp/forecasts.csv"
        code, text = run(machine, kept)
        assert code == 0 and int(text.split()[-1]) > 1000, text


@pytest.fixture(scope="module")
def debian_13(client: Any, trixie: str) -> Iterator[Any]:
    with bare(client, trixie, {}) as machine:
        if (code_and_text := run(machine, PACKAGES))[0]:
            pytest.skip(f"Debian's archive is not reached from a container: {code_and_text[1][-200:]}")
        yield machine


def test_first_train_on_debian_13_offers_the_package_index_s_torch_with_its_size(debian_13: Any) -> None:
    code, text = run(debian_13, "cd /clone && ./invokew train --dry-run")
    require_index(text)
    assert code == 0, text
    assert "with Python 3.13" in text
    code, text = run(debian_13, "cd /clone && ./invokew train --epochs 1", ROCMATRIX_PLAIN_WHEELS="no")
    assert code == 2, text
    assert "fetching torch-2.13.0+cpu-cp313-cp313" in text
    assert "torch 2.13.0 of the Python package index for Python 3.13" in text and "2.7 GB to fetch" in text
    assert "\nRM114 " in text and "--use-installed-torch" in text


def test_train_on_debian_13_with_debian_s_torch_leaves_a_model_that_forecasts(debian_13: Any) -> None:
    code, text = run(debian_13, OWN_TORCH)
    assert code == 0, text
    if (code_and_text := run(debian_13, OWN_PYTHON))[0]:
        pytest.skip(f"no package index is reached from a container: {code_and_text[1][-300:]}")
    own = {"ROCMATRIX_PYTHON": "/opt/torch/bin/python"}
    code, text = run(debian_13, "cd /clone && ./invokew train --use-installed-torch --epochs 2 --run first", **own)
    assert code == 0, text
    assert "installed for /opt/torch/bin/python (3.13" in text
    following = next(line for line in text.splitlines() if line.startswith("next    ./invokew predict "))
    command = following.removeprefix("next").replace("NEW.csv", SAMPLE.split()[1])
    code, text = run(debian_13, f"cd /clone && {command} && wc -l < forecasts.csv", **own)
    assert code == 0 and int(text.split()[-1]) > 1000, text
