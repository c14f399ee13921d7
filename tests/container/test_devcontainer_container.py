"""The dev containers' own command line brings the CPU cell up as a place to work in, and runs things there."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rocmatrix.containers.runspec import Chosen, run_spec
from rocmatrix.host.hardware import read_hardware
from rocmatrix.images import build
from rocmatrix.jobs import devcontainer
from tests.fixtures import cells, sysfs
from tests.fixtures.stand_ins import stand_in_wheel
from tests.left_out import long

ROOT = Path(__file__).resolve().parents[2]
CLI = ROOT / ".rocmatrix" / "ci" / "devcontainers" / "node_modules" / ".bin" / "devcontainer"
UID, GID = 23456, 23457  # of no other test, for a volume for downloads is named by the user alone
PROBES = ("--probe=device", "--probe=blas")

pytestmark = [
    pytest.mark.container,
    pytest.mark.skipif(not CLI.exists(), reason="the dev containers' command line is not here: .ci/targets fetches it"),
    pytest.mark.skipif(os.geteuid() != 0, reason="giving the workspace to another user needs root"),
]


def cli(*arguments, workspace):
    argv = [str(CLI), *arguments[:1], "--workspace-folder", str(workspace), *arguments[1:]]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.fixture
def workplace(client, cpu_image, cpu_cell, tmp_path):
    """Return a function: what to expect of the smoke, to a workspace in which .devcontainer/ was written."""
    made = []

    def workplace(expect):
        folder = tmp_path / f"workspace-{expect}"
        shutil.copytree(ROOT / "trainer", folder / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
        command = ["-m", "trainer", "smoke", f"--expect={expect}", *PROBES]
        spec = run_spec(
            cpu_cell,
            read_hardware(sysfs.no_driver(tmp_path / "machine")),
            Chosen(
                image=build.tag(cpu_cell),
                entrypoint="python",
                command=command,
                run_folder=folder,
                user=f"{UID}:{GID}",
                features=devcontainer.FEATURES,
            ),
        )
        devcontainer.write(folder / ".devcontainer", devcontainer.files(spec))
        for path in (folder, *folder.rglob("*")):
            os.chown(path, UID, GID)
        made.append(folder)
        return folder

    yield workplace
    for folder in made:
        remove(client, folder, cpu_cell)


def remove(client, folder, cell):
    label = f"devcontainer.local_folder={folder}"
    for container in client.containers.list(all=True, filters={"label": label}):
        image = container.image
        container.remove(force=True, v=True)
        client.images.remove(image.id, force=True)
    for volume in client.volumes.list():
        if volume.name in (f"rocmatrix-cache-{cell.name}-{UID}", f"rocmatrix-pip-{UID}"):
            volume.remove(force=True)


def probes(text):
    """Return the verdicts among the lines, which the command line prefixes with the time."""
    lines = (line.partition('{"event": "probe"') for line in text.splitlines())
    events = [json.loads(head + rest) for _, head, rest in lines if head]
    return {event["probe"]: event["status"] for event in events}


@long
def test_devcontainer_starts_proves_itself_and_works_as_the_host_user(workplace, tmp_path):
    workspace = workplace("any")
    up = cli("up", workspace=workspace)
    assert up.returncode == 0, up.stderr[-3000:]
    assert json.loads(up.stdout.splitlines()[-1])["outcome"] == "success"
    assert probes(up.stderr) == {"device": "pass", "blas": "pass"}
    wheel = stand_in_wheel("rocmatrix-test-package", "1.0", workspace)
    look = f"""
        id -u; id -g; stat -c %u .
        python -c 'import trainer; print(trainer.__file__)'
        python -m pip install --quiet --disable-pip-version-check --no-index ./{wheel.name}
        python -c 'import rocmatrix_test_package, torch; print(torch.__version__)'
        touch made /cache/made ~/.cache/pip/made && echo written
        touch /opt/venv/made 2>/dev/null || echo kept
        git --version >/dev/null && echo git
        grep CapBnd /proc/self/status
    """
    done = cli("exec", "bash", "-c", look, workspace=workspace)
    inside = f"/workspaces/{workspace.name}"
    assert done.stdout.splitlines() == [
        *(f"{UID}", f"{GID}", f"{UID}"),
        f"{inside}/trainer/__init__.py",
        f"{cells.CPU.release.torch}+cpu",
        *("written", "kept", "git"),
        "CapBnd:\t0000000000000000",
    ], done.stderr
    assert (workspace / "made").stat().st_uid == UID


@long
def test_smoke_that_fails_is_reported_by_the_command_line(workplace):
    up = cli("up", workspace=workplace("rocm"))
    assert up.returncode != 0
    outcome = json.loads(up.stdout.splitlines()[-1])
    assert outcome["outcome"] == "error"
    assert "postCreateCommand" in outcome["message"] + outcome.get("description", "")
