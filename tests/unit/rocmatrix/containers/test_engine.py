"""The engine's absence in all its forms: each ends in RM201 with what was tried, none in a traceback."""

import hashlib
import json
import os
import socket
import threading
import time
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import docker.errors
import pytest
import requests

from rocmatrix.containers import engine
from rocmatrix.runtime import console
from rocmatrix.runtime.errors import RocmatrixError


def expect_rm201(*words):
    with pytest.raises(RocmatrixError) as caught:
        engine.connect()
    assert caught.value.code == "RM201"
    for word in words:
        assert word in str(caught.value)


@pytest.fixture
def dead_socket(tmp_path):
    """Return a socket file behind which no daemon listens any more."""
    path = tmp_path / "d.sock"
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(path))
    return path


def test_daemon_that_was_never_started(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    expect_rm201(f"unix://{tmp_path}/none.sock (DOCKER_HOST)", "not running")


def test_daemon_that_was_stopped(dead_socket, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{dead_socket}")
    expect_rm201(str(dead_socket), "the daemon is stopped")


@pytest.fixture
def contexts(tmp_path, monkeypatch):
    """Return a function that makes a docker context of a name, in a configuration of the test's own."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text("{}")

    def make(name, host):
        folder = tmp_path / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
        folder.mkdir(parents=True)
        endpoint = {"docker": {"Host": host, "SkipTLSVerify": False}}
        (folder / "meta.json").write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": endpoint}))

    return make


def test_context_of_the_environment_is_obeyed_as_the_command_line_does(contexts, tmp_path, monkeypatch):
    contexts("elsewhere", f"unix://{tmp_path}/elsewhere.sock")
    monkeypatch.setenv("DOCKER_CONTEXT", "elsewhere")
    expect_rm201(f"unix://{tmp_path}/elsewhere.sock", "docker context 'elsewhere'", "not running")


def test_builder_within_the_engine_has_the_name_of_its_context(contexts, tmp_path, monkeypatch):
    contexts("usual", f"unix://{tmp_path}/usual.sock")
    monkeypatch.setenv("BUILDX_BUILDER", "in-a-container")
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    assert engine.own_builder() == "default"
    monkeypatch.setenv("DOCKER_CONTEXT", "usual")
    assert engine.own_builder() == "usual"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert engine.own_builder() == "default"


def test_current_context_of_the_configuration_is_obeyed(contexts, tmp_path, monkeypatch):
    contexts("usual", f"unix://{tmp_path}/usual.sock")
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    (tmp_path / "config.json").write_text('{"currentContext": "usual"}')
    expect_rm201(f"unix://{tmp_path}/usual.sock", "not running")


def test_unknown_context_is_named(contexts, monkeypatch):
    monkeypatch.setenv("DOCKER_CONTEXT", "nowhere")
    expect_rm201("no docker context 'nowhere'", "docker context ls")


def test_address_wins_over_a_context(contexts, tmp_path, monkeypatch):
    contexts("elsewhere", f"unix://{tmp_path}/elsewhere.sock")
    monkeypatch.setenv("DOCKER_CONTEXT", "elsewhere")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/here.sock")
    expect_rm201(f"unix://{tmp_path}/here.sock (DOCKER_HOST)")


@pytest.mark.parametrize(
    "host", ["ssh://me@lab", "tcp://10.0.0.5:2376", "tcp://[fd00::5]:2376", "https://lab.example:2376", "SSH://lab"]
)
def test_engine_on_another_machine_is_refused_before_it_is_queried(host, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", host)
    monkeypatch.setattr(engine, "_client", lambda: pytest.fail("it was asked"))
    expect_rm201("the engine's address is not this machine's", host)


def test_context_of_another_machine_is_refused_and_named(contexts, monkeypatch):
    contexts("lab", "ssh://me@lab")
    monkeypatch.setenv("DOCKER_CONTEXT", "lab")
    expect_rm201("the engine's address is not this machine's", "docker context 'lab'", "docker context use default")


@pytest.mark.parametrize(
    "host",
    [
        *("", "unix:///run/docker.sock", "tcp://127.0.0.1:2375", "tcp://[::1]:2375", "tcp://localhost:1"),
        *("tcp://0.0.0.0:1", "tcp://:2375", "npipe:////./pipe/docker_engine", "fd://", "carrier-pigeon://roof"),
    ],
)
def test_address_of_this_machine_is_not_refused(host):
    assert not engine.on_another_machine(host)


def test_broken_address_is_no_traceback(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "tcp://[::1")
    expect_rm201("tcp://[::1")


def test_daemon_elsewhere_that_refuses(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    expect_rm201("tcp://127.0.0.1:9", "the daemon is stopped")


def test_socket_that_is_closed_to_this_user(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/some.sock")
    expect_rm201("/run/some.sock", "join its group")


def test_address_that_makes_no_sense(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "carrier-pigeon://roof")
    expect_rm201("carrier-pigeon://roof")


def test_something_else_that_answers(tmp_path, monkeypatch):
    """A socket that closes every connection without a word is no engine either."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setattr(engine, "TIMEOUT_SECONDS", 1)
        expect_rm201("127.0.0.1")


def test_obstacle_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    obstacle = engine.obstacle()
    assert obstacle is not None
    assert str(tmp_path) in obstacle
    assert "\n" not in obstacle


def test_image_of_a_stopped_engine_is_rm201_not_rm203(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(RocmatrixError, match="RM201"):
        engine.image_id("rocmatrix:any")


def test_missing_client_is_rm201(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RocmatrixError, match="no `docker` command"):
        engine.require_buildx()


def test_client_without_buildx_is_rm201(tmp_path, monkeypatch):
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\necho \"docker: 'buildx' is not a docker command.\" >&2\nexit 1\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(RocmatrixError, match="not a docker command"):
        engine.require_buildx()


class Slow(BaseHTTPRequestHandler):
    """A STAND-IN engine that answers a ping at once and takes its time for anything else."""

    protocol_version = "HTTP/1.1"
    seconds = 1.0

    def do_GET(self):
        self._answer("/_ping" not in self.path and "/version" not in self.path)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(True)

    do_HEAD = do_GET  # noqa: N815 -- the name that http.server calls

    def _answer(self, late):
        if late:
            time.sleep(self.seconds)
        body = json.dumps({"Id": "c" * 64, "ApiVersion": "1.44", "Warnings": []}).encode()
        self.send_response(201 if self.command == "POST" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        with suppress(ConnectionError):  # the client has not waited
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def slow(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads = False  # its close waits for late answers, whose traceback would end up in another test
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setattr(engine, "TIMEOUT_SECONDS", 0.3)
    yield server
    server.shutdown()
    server.server_close()


def test_busy_engine_is_waited_for_where_it_works_and_named_where_it_does_not_answer(slow):
    with closing(engine.connect(work=True)) as client:
        assert client.api.create_container("busybox")["Id"] == "c" * 64
    with closing(engine.connect()) as client, pytest.raises(requests.RequestException) as caught:
        client.api.create_container("busybox")
    error = console.known(caught.value)
    assert error.code == "RM672"
    assert "timed out" in error.what.lower()


def test_client_errors_of_every_kind_have_a_code_of_their_own():
    for error in (docker.errors.APIError("conflict"), docker.errors.NotFound("gone"), requests.ConnectionError("cut")):
        assert console.known(error).code == "RM672"
    assert console.known(RocmatrixError("RM203", what="x")).code == "RM203"


@pytest.mark.parametrize("content", ["{", "[]", '{"Name": 1}'])
def test_context_whose_file_is_damaged_is_no_error_of_this_program(contexts, tmp_path, monkeypatch, content):
    contexts("broken", "ssh://me@lab")
    (meta,) = tmp_path.rglob("meta.json")
    meta.write_text(content)
    monkeypatch.setenv("DOCKER_CONTEXT", "broken")
    expect_rm201()


@pytest.mark.parametrize(
    "name", ["localhost", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]", "ip6-localhost", socket.gethostname(), "0.0.0.0"]
)
def test_names_of_this_machine_are_not_another_one(name):
    assert not engine.on_another_machine(f"tcp://{name}:2375")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["name=seccomp,profile=builtin", "name=rootless", "name=cgroupns"], {"seccomp", "rootless", "cgroupns"}),
        (["name=apparmor", "name=userns"], {"apparmor", "userns"}),
        (["name=seccomp,profile=/etc/rootless.json"], {"seccomp"}),
        ([], set()),
        (None, set()),
    ],
)
def test_security_options_are_read_by_name(options, names):
    assert engine.security_options({"SecurityOptions": options}) == names


class Reporting:
    """A STAND-IN for an engine's client that reports itself as `docker info` does."""

    def __init__(self, report):
        self.report, self.closed = report, False

    def info(self):
        if isinstance(self.report, Exception):
            raise self.report
        return self.report

    def version(self):
        return {"Components": self.report.get("parts")}

    def close(self):
        self.closed = True


@pytest.mark.parametrize(
    ("report", "rootless"),
    [
        ({"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]}, True),
        ({"SecurityOptions": ["name=seccomp,profile=builtin"]}, False),
        (OSError("the engine went away"), False),
    ],
)
def test_engine_is_rootless_by_its_own_report(monkeypatch, report, rootless):
    client = Reporting(report)
    monkeypatch.setattr(engine, "connect", lambda: client)
    assert engine.is_rootless() is rootless
    assert client.closed


OWN_KERNEL = os.uname().release


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ({"OperatingSystem": "Docker Desktop", "KernelVersion": "6.12.5-linuxkit"}, "Docker Desktop"),
        ({"KernelVersion": "6.8.0-100-generic"}, "another kernel"),  # a socket that ssh forwards
        ({"KernelVersion": OWN_KERNEL, "SecurityOptions": ["name=userns"]}, "remapped users"),
    ],
)
def test_engine_that_reaches_no_card_of_this_machine_is_refused_with_the_reason(monkeypatch, report, words):
    """The reports are SYNTHETIC, after `docker info`."""
    client = Reporting(report)
    monkeypatch.setattr(engine, "connect", lambda: client)
    with pytest.raises(RocmatrixError, match="RM201") as caught:
        engine.require_cards()
    assert words in caught.value.why and "--in native" in caught.value.next
    assert client.closed


@pytest.mark.parametrize("report", [{"KernelVersion": OWN_KERNEL}, {}, OSError("the engine went away")])
def test_engine_of_this_machine_or_one_that_reports_nothing_is_not_refused(monkeypatch, report):
    monkeypatch.setattr(engine, "connect", lambda: Reporting(report))
    engine.require_cards()


def test_engine_that_does_not_answer_is_left_to_what_needs_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    engine.require_cards()


ROOTLESS = ["name=seccomp,profile=default", "name=rootless"]


@pytest.mark.parametrize(
    ("report", "kind"),
    [
        ({"SecurityOptions": ROOTLESS, "parts": [{"Name": "Podman Engine"}, {"Name": "Conmon"}]}, "podman"),
        ({"SecurityOptions": ROOTLESS, "parts": [{"Name": "Engine"}, {"Name": "rootlesskit"}]}, "docker"),
        ({"SecurityOptions": ROOTLESS}, "docker"),
        ({"SecurityOptions": ["name=seccomp"], "parts": [{"Name": "Podman Engine"}]}, None),
    ],
)
def test_rootless_engine_is_docker_or_podman_by_the_parts_of_its_version(monkeypatch, report, kind):
    """The reports are SYNTHETIC, after the sources named in the function."""
    monkeypatch.setattr(engine, "connect", lambda: Reporting(report))
    assert engine.rootless_kind() == kind


def test_engine_that_does_not_answer_is_taken_for_none_that_is_rootless(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    assert engine.is_rootless() is False
