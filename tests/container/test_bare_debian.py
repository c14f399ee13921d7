"""A first `./invokew train` on a bare Debian 13 (Python 3.13) that reaches the package index and not PyTorch's own.

The wheels themselves, 2.7 GB, are not fetched here: what is chosen, and that it can be declined, is.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.container

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = "apt-get update -q && apt-get install -y -q --no-install-recommends python3 python3-venv"
# How this machine's pip reaches an index over the network; folders of this machine are not in the container.
REACH = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


@pytest.fixture(scope="module")
def bare(client: Any, trixie: str) -> Iterator[Any]:
    """Return a running Debian 13 with Python and a copy of this checkout's own files in /clone."""
    given = {name: os.environ[name] for each in REACH for name in (each, each.lower()) if name in os.environ}
    mounts = {str(CERTIFICATES): {"bind": str(CERTIFICATES), "mode": "ro"}} if CERTIFICATES.is_file() else {}
    container = client.containers.run(
        trixie,
        ["sleep", "1500"],
        detach=True,
        network_mode="host",
        extra_hosts=dict.fromkeys(("download.pytorch.org", "download-r2.pytorch.org"), "127.0.0.1"),
        environment={**given, "PIP_CERT": str(CERTIFICATES), "DEBIAN_FRONTEND": "noninteractive"},
        volumes=mounts,
    )
    try:
        if (code_and_text := run(container, PACKAGES))[0]:
            pytest.skip(f"Debian's archive is not reached from a container: {code_and_text[1][-200:]}")
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
        run(container, "mkdir /clone")
        container.put_archive("/clone", packed)
        yield container
    finally:
        container.remove(force=True)


def run(container: Any, command: str, **environment: str) -> tuple[int, str]:
    done = container.exec_run(["sh", "-c", command], environment=environment)
    return done.exit_code, done.output.decode(errors="replace")


def test_first_train_on_debian_13_offers_the_package_index_s_torch_with_its_size(bare: Any) -> None:
    code, text = run(bare, "cd /clone && ./invokew train --dry-run")
    if "RM402" in text:
        pytest.skip(f"no package index is reached from a container: {text[-300:]}")
    assert code == 0, text
    assert "with Python 3.13" in text
    code, text = run(bare, "cd /clone && ./invokew train --epochs 1", ROCMATRIX_PLAIN_WHEELS="no")
    assert code == 2, text
    assert "fetching torch-2.13.0+cpu-cp313-cp313" in text
    assert "torch 2.13.0 of the Python package index for Python 3.13" in text and "2.7 GB to fetch" in text
    assert "\nRM114 " in text and "--use-installed-torch" in text
