"""How a job's container ended is read from the container itself; its state and the engine are STAND-INS."""

import os
import signal
import subprocess
from types import SimpleNamespace

import pytest

from rocmatrix.containers import orphan_cleanup
from rocmatrix.jobs import contained
from rocmatrix.jobs.interactive import NOT_STARTED
from rocmatrix.jobs.runner import Finished, Interrupted

STARTED = "2026-11-22T10:00:00Z"


def ended(client_status=0, **state):
    known = {"ExitCode": 0, "Running": False, "StartedAt": STARTED, "OOMKilled": False} | state
    return contained._ended(Finished(status=client_status, events=(), stderr_tail=b"log"), known)


def test_container_stays_until_it_was_inspected_and_names_its_maker():
    argv = contained.create_argv(["docker", "run", "--rm", "--user=1:1", "image", "train", "--rm-after"])
    assert argv[:2] == ["docker", "create"]
    assert argv[-4:] == ["--user=1:1", "image", "train", "--rm-after"]
    assert "--rm" not in argv
    assert any(word.startswith(f"--label={orphan_cleanup.LABEL}") for word in argv)


@pytest.mark.parametrize("status", [0, 1, 137])
def test_status_is_the_containers_own(status):
    done = ended(client_status=0, ExitCode=status)
    assert (done.status, done.trouble, done.stderr_tail) == (status, None, b"log")


def test_container_out_of_memory_is_named_in_its_stderr_tail():
    assert b"memory limit" in ended(ExitCode=137, OOMKilled=True).stderr_tail


@pytest.mark.parametrize(
    ("client_status", "state", "stage", "words"),
    [
        (-9, {"Running": True}, "signal", "killed by signal 9"),
        (1, {"Running": True}, "engine", "still running"),
        (0, {"StartedAt": "0001-01-01T00:00:00Z", "ExitCode": 128, "Error": "no runtime"}, "engine", "no runtime"),
    ],
)
def test_end_that_the_job_did_not_make_is_trouble_of_the_host(client_status, state, stage, words):
    done = ended(client_status, **state)
    assert done.trouble is not None
    assert (done.trouble.stage, words in done.trouble.detail) == (stage, True)


@pytest.mark.parametrize("status", contained.OF_THE_IMAGE)
def test_program_that_the_image_lacks_is_no_trouble_of_the_host(status):
    done = ended(StartedAt="0001-01-01T00:00:00Z", ExitCode=status)
    assert (done.status, done.trouble) == (status, None)


def test_container_that_was_not_started_has_a_status_of_its_own():
    assert ended(StartedAt="0001-01-01T00:00:00Z", ExitCode=128).status == NOT_STARTED


def test_lost_connection_counts_where_the_container_answers_again():
    state = {"ExitCode": 0, "Running": False, "StartedAt": STARTED}
    client = SimpleNamespace(api=SimpleNamespace(inspect_container=lambda _: {"State": state}))
    made = contained._Made(container=SimpleNamespace(id="c"), client=client, lost=["EOF"])
    done = contained._judged(Finished(status=0, events=(), stderr_tail=b""), made)
    assert done.trouble is not None
    assert "broke off: EOF" in done.trouble.detail


def test_container_that_could_not_be_made_is_trouble_of_the_engine(monkeypatch):
    failed = SimpleNamespace(returncode=125, stdout="", stderr="no such image\n")
    monkeypatch.setattr(contained.subprocess, "run", lambda *_, **__: failed)
    done = contained.run(["docker", "run", "image"], show=print, log=None)
    assert (done.status, done.trouble.stage, done.trouble.detail) == (NOT_STARTED, "engine", "no such image")


@pytest.mark.parametrize(
    ("running", "waits", "calls"),
    [(True, True, ["wait", "logs"]), (True, False, ["wait", "stop", "logs"]), (False, True, [])],
)
def test_container_whose_client_ended_first_is_waited_for_and_its_last_words_are_printed(running, waits, calls, capsys):
    done = []

    def wait(_, timeout):
        done.append("wait")
        if not waits:
            raise OSError("no end in time")

    api = SimpleNamespace(
        inspect_container=lambda _: {"State": {"Running": running}},
        wait=wait,
        stop=lambda _, timeout: done.append("stop"),
        logs=lambda _, **__: done.append("logs") or b"RM554 Stopped with a checkpoint\n",
    )
    contained._let_end(contained._Made(container=SimpleNamespace(id="c"), client=SimpleNamespace(api=api)))
    assert done == calls
    assert ("RM554" in capsys.readouterr().err) is running


@pytest.mark.parametrize(
    ("stop", "written", "expected"),
    [
        (KeyboardInterrupt(), b"read: bars.csv\n", "SIGINT"),
        (KeyboardInterrupt(), b"", "SIGTERM"),  # Python that starts would print a traceback
        (KeyboardInterrupt("SIGHUP"), b"read: bars.csv\n", "SIGTERM"),
    ],
)
def test_stop_is_passed_on_to_a_container_that_is_still_being_started(stop, written, expected):
    sent = []

    def kill(_, signal):
        sent.append(signal)
        if len(sent) < 3:
            raise OSError("container is not running")

    ended = SimpleNamespace(poll=lambda: None, communicate=lambda timeout: None)
    api = SimpleNamespace(kill=kill, logs=lambda _, tail: written)
    made = contained._Made(container=SimpleNamespace(id="c"), client=SimpleNamespace(api=api))
    contained._stop(made, ended, stop)
    assert sent == [expected] * 3


def test_container_that_does_not_answer_a_stop_is_killed_and_its_client_ended(monkeypatch):
    def late(timeout):
        raise subprocess.TimeoutExpired("docker", timeout)

    ended, sent = [], []
    api = SimpleNamespace(kill=lambda _, signal: sent.append(signal), logs=lambda _, tail: b"x")
    monkeypatch.setattr(contained.runner, "end", lambda client, stop: ended.append(client))
    client = SimpleNamespace(poll=lambda: None, communicate=late)
    contained._stop(
        contained._Made(container=SimpleNamespace(id="c"), client=SimpleNamespace(api=api)), client, KeyboardInterrupt()
    )
    assert ended == [client]
    assert sent == ["SIGINT", "SIGKILL"]


@pytest.mark.parametrize(("number", "text"), [(signal.SIGINT, ""), (signal.SIGTERM, "SIGTERM")])
def test_stop_while_a_container_is_made_comes_once_it_is_known(number, text):
    before = signal.getsignal(number)
    with contained._stops_held() as release:
        os.kill(os.getpid(), number)
        with pytest.raises(KeyboardInterrupt) as stopped:
            release()
        assert str(stopped.value) == text
        assert signal.getsignal(number) == before
    with pytest.raises(KeyboardInterrupt), contained._stops_held():
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)  # a second one is not held back
    assert signal.getsignal(number) == before


def test_stop_while_a_container_could_not_be_made_is_a_stop(monkeypatch):
    def create(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)
        return SimpleNamespace(returncode=125, stdout="", stderr="no such image\n")

    monkeypatch.setattr(contained.subprocess, "run", create)
    with pytest.raises(Interrupted) as stopped:
        contained.run(["docker", "run", "image"], show=print, log=None)
    assert stopped.value.finished.trouble.stage == "signal"
