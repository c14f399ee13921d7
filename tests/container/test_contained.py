"""A job's container on a real engine: what it names, and how each end of it is told apart.

The image is a plain Debian; the job prints what a smoke suite would (STAND-IN).
"""

import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from rocmatrix.containers import orphan_cleanup
from rocmatrix.images import labels
from rocmatrix.jobs import contained, job
from tests.container.rehearsal.proxy import Proxy

pytestmark = pytest.mark.container

ROOT = Path(__file__).resolve().parents[2]
VERDICT = '{"event": "probe", "probe": "blas", "status": "pass"}'
TAG = "rocmatrix-test/contained:1"


@pytest.fixture
def image(client, debian):
    """A tag of the test's own, so that it can be moved."""
    client.images.get(debian).tag(*TAG.split(":"))
    yield client.images.get(TAG).id
    with suppress(Exception):
        client.images.remove(TAG, force=True)


def argv(image, script, *options):
    return ["docker", "run", "--rm", "--pull=never", "--network=none", *options, image, "sh", "-c", script]


def left(client):
    """Return the jobs on the engine but for those of simulated machines: the rehearsal may run at the same time."""
    found = client.api.containers(all=True, filters={"label": orphan_cleanup.LABEL})
    return [each for each in found if labels.SIMULATED not in each["Labels"]]


def ran(client, image, script, *options, show=lambda _: None):
    """Run a job that leaves no container. Its own label finds it: other suites have jobs on the same engine."""
    own = f"rocmatrix-test.run={uuid4()}"
    done = job.run(argv(image, script, f"--label={own}", *options), show=show)
    assert client.api.containers(all=True, filters={"label": own}) == []
    return done


def test_job_names_the_image_it_was_made_of_and_ends_with_its_own_status(client, image):
    done = ran(client, image, f"echo '{VERDICT}'; echo words >&2; exit 3", "--label=org.rocmatrix.inputs=x")
    assert (done.status, done.container.image, done.trouble) == (3, image, None)
    assert done.container.labels["org.rocmatrix.inputs"] == "x"
    assert [event["probe"] for event in done.events] == ["blas"]
    assert b"words" in done.stderr_tail


def test_image_whose_tag_moves_while_it_runs_is_named_as_it_ran(client, image):
    other = client.images.get(TAG)
    made = client.containers.create(TAG, ["sh"])
    try:
        moved = made.commit(*TAG.split(":"), conf={"Labels": {"org.rocmatrix.inputs": "forged"}})
    finally:
        made.remove()
    other.tag(*TAG.split(":"))

    def move(_):
        moved.tag(*TAG.split(":"))

    done = ran(client, TAG, f"echo '{VERDICT}'; sleep 1", show=move)
    assert client.images.get(TAG).id == moved.id != image
    assert done.container.image == image
    assert "org.rocmatrix.inputs" not in done.container.labels
    client.images.remove(moved.id, force=True)


@pytest.mark.parametrize("sent", ["SIGKILL", "SIGTERM"])
def test_container_killed_from_outside_is_no_trouble_of_the_host(client, image, sent):
    def kill(_):
        until = time.monotonic() + 10
        while not (running := client.containers.list(filters={"label": f"rocmatrix-test={sent}"})):
            assert time.monotonic() < until  # the engine lists it a moment after its first word
        running[0].kill(sent)

    done = ran(
        client,
        image,
        f"trap 'exit 143' TERM; echo '{VERDICT}'; sleep 30 & wait",
        f"--label=rocmatrix-test={sent}",
        show=kill,
    )
    assert (done.status, done.trouble) == (137 if sent == "SIGKILL" else 143, None)


@pytest.mark.parametrize("status", [125, 126, 127, 137])
def test_status_of_the_program_that_is_an_engines_too_is_the_programs(client, image, status):
    done = ran(client, image, f"exit {status}")
    assert (done.status, done.trouble) == (status, None)


def test_program_that_is_not_in_the_image_is_the_images_failure(client, image):
    done = job.run(["docker", "run", "--rm", "--network=none", image, "no-such-program"], show=lambda _: None)
    assert (done.status, done.trouble, done.container.image) == (127, None, image)


@pytest.mark.parametrize("wrong", [["--device=/dev/no-such-node"], ["--no-such-option"]])
def test_container_that_cannot_be_made_or_started_is_trouble_of_the_host(client, image, wrong):
    done = ran(client, image, "true", *wrong)
    assert done.trouble.stage == "engine"
    assert done.events == ()


def test_image_that_is_gone_is_trouble_of_the_host(client):
    done = job.run(argv("rocmatrix-test/none:1", "true"), show=lambda _: None)
    assert (done.status, done.trouble.stage, done.container) == (contained.NOT_STARTED, "engine", None)


def test_engine_that_is_lost_in_the_middle_is_trouble_of_the_host(client, image, tmp_path, monkeypatch):
    """The engine itself stays: what goes is the way to it, as in a restart of the daemon."""
    real = client.api.base_url.removeprefix("http+docker://").replace("localhost", "/var/run/docker.sock")
    if not Path(real).is_socket():
        pytest.skip(f"the engine is not reached through a socket here: {real}")
    own = f"rocmatrix-test.run={uuid4()}"
    proxy = Proxy(tmp_path / "docker.sock", lambda _: None, real)
    monkeypatch.setenv("DOCKER_HOST", proxy.environment["DOCKER_HOST"])
    try:
        done = job.run(argv(image, f"echo '{VERDICT}'; sleep 20", f"--label={own}"), show=lambda _: proxy.gone())
    finally:
        for each in client.api.containers(all=True, filters={"label": own}):
            client.api.remove_container(each["Id"], force=True)
    assert done.trouble.stage == "engine"
    assert done.container.image == image


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_to_this_program_ends_the_container_and_is_trouble_of_the_host(client, image, tmp_path, sent):
    own = f"rocmatrix-test.run={uuid4()}"
    # a first process without an answer of its own to a signal is not ended by it
    answering = f"trap 'exit 1' INT TERM; echo '{VERDICT}'; sleep 60 & wait"
    words = argv(image, answering, f"--label={own}")
    code = f"""
import sys
from rocmatrix.jobs import job, runner
try:
    job.run({words!r}, show=lambda event: print("begun", flush=True))
except runner.Interrupted as stopped:
    found = stopped.finished
    print(found.trouble.stage, found.container.image, len(found.events), flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(sent)
    assert process.communicate(timeout=60)[0].split() == ["signal", image, "1"]
    assert client.api.containers(all=True, filters={"label": own}) == []


def test_leftovers_of_a_killed_program_are_removed_when_old(client, image, monkeypatch):
    old = client.containers.create(image, ["true"], labels={orphan_cleanup.LABEL: "1"})
    ran_at = client.containers.create(image, ["true"])
    try:
        ran(client, image, "true")
        assert old.id in {each["Id"] for each in left(client)}
        is_old = orphan_cleanup._is_old
        monkeypatch.setattr(orphan_cleanup, "LEFT_UNSTARTED", timedelta(0))
        monkeypatch.setattr(orphan_cleanup, "_is_old", lambda *filters: filters[1] == old.id and is_old(*filters))
        time.sleep(1.1)
        job.run(argv(image, "true"), show=lambda _: None)
        assert old.id not in {each["Id"] for each in left(client)}
        ran_at.reload()  # it is none of ours
    finally:
        for each in (old, ran_at):
            with suppress(Exception):
                each.remove(force=True)
