"""The user of a development container: of the host's number, or root where a rootless engine takes its user for root.

The engine here runs as root and the cell's image is a STAND-IN: a distribution with a virtual environment.
"""

import os
import subprocess
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CELL = """\
ARG BASE
FROM ${BASE}
RUN python3 -m venv --without-pip /opt/venv && ln -s /bin/true /usr/local/bin/git
ENV PATH=/opt/venv/bin:$PATH
"""
LOOK = "id -un; id -u; id -g; echo $HOME; touch ~/.cache/pip/x made && echo written; stat -c %u made; which python"

pytestmark = pytest.mark.container


def docker(*words, **more):
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=False, timeout=300, **more)


@pytest.fixture
def build(tmp_path):
    """Return a function: text and arguments of a Dockerfile to the tag of an image, which is removed in the end."""
    made = []

    def build(text, **arguments):
        tag = f"rocmatrix-test/devcontainer-{uuid.uuid4().hex}"
        words = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        done = docker("build", "--tag", tag, *words, "--file", "-", str(tmp_path), input=text)
        assert done.returncode == 0, done.stderr[-2000:]
        made.append(tag)
        return tag

    yield build
    for tag in reversed(made):
        docker("rmi", "--force", tag)


@pytest.mark.parametrize(("name", "uid", "gid"), [("developer", 23456, 23457), ("root", 0, 0)])
def test_user_of_the_dockerfile_can_write_a_workspace_of_that_number(build, debian, tmp_path, name, uid, gid):
    text = (ROOT / "templates/devcontainer/Dockerfile").read_text()
    numbers = {"DEVELOPER_NAME": name, "DEVELOPER_UID": uid, "DEVELOPER_GID": gid}
    image = build(text, CELL_IMAGE=build(CELL, BASE=debian), **numbers)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    os.chown(workspace, uid, gid)
    place = f"type=bind,source={workspace},target=/workspaces/w"
    done = docker("run", "--rm", "--cap-drop=ALL", "--mount", place, "--workdir=/workspaces/w", image, "sh", "-c", LOOK)
    assert done.stdout.split() == [
        *(name, f"{uid}", f"{gid}", "/home/developer", "written", f"{uid}", "/home/developer/venv/bin/python")
    ], done.stderr
