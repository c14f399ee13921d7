"""A job's container: made of an image by its id, inspected, started, waited for, removed.

What the record of the job names is read here, from the container itself. How it ended is decided by the step that
ended it: a container that could not be made or started, or an engine that was lost, is trouble of the host.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.containers import engine, label_integrity, orphan_cleanup
from rocmatrix.jobs import runner
from rocmatrix.jobs.interactive import NOT_STARTED
from rocmatrix.jobs.runner import Container, Finished, Interrupted
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.trouble import Trouble

if TYPE_CHECKING:
    import docker

RUN = ("docker", "run")
JUST_BEFORE = 0.1  # seconds in which a client that ends may lose lines
BETWEEN_LOOKS = 0.05  # seconds between attempts to reach a container that is being started
OF_THE_IMAGE = (126, 127)  # the program that the image names cannot be executed, or is not in it


def create_argv(argv: Sequence[str]) -> list[str]:
    """Return the command that makes the container of a `docker run`: it stays until it has been inspected."""
    options = [word for word in argv[2:] if word != "--rm"]
    labels = [f"--label={name}={value}" for name, value in orphan_cleanup.label().items()]
    return ["docker", "create", *labels, *options]


def run(argv: Sequence[str], *, show: Callable[[runner.Event], None], log: Path | None) -> Finished:
    """Run the container of a `docker run` to its end. Raises RM201 without a client, Interrupted on a signal.

    Args:
        argv: the whole command, beginning with `docker run`.
        show: called with each event as it arrives.
        log: file for all output of the job; None keeps none.
    """
    with runner.interruptible(), _stops_held() as release:
        made = _created(argv)
        if not isinstance(made, Finished):
            return _attended(made, show, log, release)
        try:
            release()
        except KeyboardInterrupt as error:
            raise Interrupted(runner.stopped_by_signal(), str(error)) from error
        return made


@contextmanager
def _stops_held() -> Iterator[Callable[[], None]]:
    """Hold a stop back until what is handed out is called, which raises it; a second stop is raised at once.

    A container that is made meanwhile would otherwise be left behind, its id unread.
    """
    came: list[KeyboardInterrupt] = []

    def hold(number: int, _: object) -> None:
        came.append(KeyboardInterrupt(*(() if number == signal.SIGINT else (signal.Signals(number).name,))))
        if len(came) > 1:
            raise came.pop()

    numbers = (signal.SIGINT, *(signal.Signals[name] for name in runner.SENT))
    before = {each: signal.signal(each, hold) for each in numbers if signal.getsignal(each) is not signal.SIG_IGN}

    def release() -> None:
        while before:
            signal.signal(*before.popitem())
        if came:
            raise came.pop()

    try:
        yield release
    finally:
        while before:
            signal.signal(*before.popitem())


def _attended(
    made: _Made, show: Callable[[runner.Event], None], log: Path | None, release: Callable[[], None]
) -> Finished:
    argv = ["docker", "start", "--attach", made.container.id]
    with contextlib.closing(made.client), _removed(made):
        try:
            release()
            done = runner.attached(argv, show=show, log=log, own_group_stop=partial(_stop, made))
        except Interrupted as stopped:
            _let_end(made)
            stopped.finished = replace(stopped.finished, container=made.container)
            raise
        except KeyboardInterrupt as error:  # before it was started
            finished = replace(runner.stopped_by_signal(), container=made.container)
            raise Interrupted(finished, str(error)) from error
        return _judged(replace(done, container=made.container), made)


def _stop(made: _Made, client: subprocess.Popen[str], stop: BaseException) -> None:
    """Pass a stop on to the container and wait for its end, of which its client prints the rest.

    Ctrl-C is passed on as such once the trainer answers it; Python ends by it with a traceback while it starts.

    Args:
        client: `docker start --attach`, which no terminal has sent the signal.
        stop: what the signal raised here.
    """
    name = "SIGTERM" if str(stop) in runner.SENT or not _answers(made) else "SIGINT"
    end = time.monotonic() + runner.SECONDS_IF_SENT_TO_BOTH
    while client.poll() is None and time.monotonic() < end:
        try:
            made.client.api.kill(made.container.id, signal=name)
            break
        except engine.failures():  # it is still being started
            time.sleep(BETWEEN_LOOKS)
    try:
        client.communicate(timeout=runner.SECONDS_TO_END)
    except subprocess.TimeoutExpired:  # its first process does not answer signals
        with contextlib.suppress(*engine.failures()):
            made.client.api.kill(made.container.id, signal="SIGKILL")
        runner.end(client, stop)


def _answers(made: _Made) -> bool:
    """Return whether the program of the container has written something: the trainer answers signals before that."""
    with contextlib.suppress(*engine.failures()):
        return bool(made.client.api.logs(made.container.id, tail=1))
    return False


def _let_end(made: _Made) -> None:
    """Wait for a container whose client ended first, and print what it wrote since: it may write a checkpoint.

    `docker start --attach` of 28 ends at SIGINT and SIGTERM at once, although it passes them on.
    """
    api, identity, now = made.client.api, made.container.id, time.time()
    with contextlib.suppress(*engine.failures()):
        if not api.inspect_container(identity)["State"]["Running"]:
            return
        try:
            api.wait(identity, timeout=int(runner.SECONDS_IF_SENT_TO_BOTH))
        except engine.failures():
            api.stop(identity, timeout=int(runner.SECONDS_TO_END))
        written = api.logs(identity, stdout=False, stderr=True, since=now - JUST_BEFORE)
        sys.stderr.write(written.decode("utf-8", errors="replace"))


@dataclass(kw_only=True)
class _Made:
    container: Container
    client: docker.DockerClient
    lost: list[str] = field(default_factory=list)  # what the wait for its end broke off with


def _created(argv: Sequence[str]) -> _Made | Finished:
    try:
        done = subprocess.run(create_argv(argv), capture_output=True, text=True, check=False, process_group=0)
    except FileNotFoundError as error:
        raise RocmatrixError("RM201", what=f"there is no `{error.filename}` command on the PATH") from error
    if done.returncode != 0:
        return _never_ran(done.stderr.strip() or "`docker create` failed")
    identity, failures = done.stdout.strip().splitlines()[-1], engine.failures()
    try:
        client = engine.connect(work=True)
        orphan_cleanup.sweep(client, keep=identity)
        made = _Made(container=_inspected(client, identity), client=client)
    except RocmatrixError as error:
        return _never_ran(f"the container could not be inspected: {error.what}")
    except failures as error:
        return _never_ran(f"the container could not be inspected: {error}")
    threading.Thread(target=_wait, args=(made,), daemon=True).start()
    return made


def _never_ran(message: str) -> Finished:
    return Finished(
        status=NOT_STARTED, events=(), stderr_tail=message.encode(), trouble=Trouble(stage="engine", detail=message)
    )


def _inspected(client: docker.DockerClient, identity: str) -> Container:
    found = client.api.inspect_container(identity)
    image = str(found["Image"])
    sealed = label_integrity.holds(client.images.get(image).attrs)
    return Container(id=identity, image=image, labels=dict(found["Config"].get("Labels") or {}), sealed=sealed)


def _wait(made: _Made) -> None:
    """Wait at the engine for the container's end; a connection that breaks off before it states that the engine did."""
    try:
        made.client.api.wait(made.container.id, timeout=None, condition="next-exit")
    except engine.failures() as error:
        made.lost.append(str(error))


def _judged(done: Finished, made: _Made) -> Finished:
    """Read the end from the container itself."""
    try:
        state = made.client.api.inspect_container(made.container.id)["State"]
    except engine.failures() as error:
        return _lost(done, f"the engine did not answer at the end: {error}")
    if made.lost:
        return _lost(done, f"the connection to the engine broke off: {made.lost[0]}")
    return _ended(done, state)


def _lost(done: Finished, message: str) -> Finished:
    return replace(done, trouble=Trouble(stage="engine", detail=message))


def _ended(done: Finished, state: Mapping[str, Any]) -> Finished:
    status = int(state["ExitCode"])
    if state["Running"] and done.status < 0:
        return replace(done, trouble=Trouble(stage="signal", detail=f"its client was killed by signal {-done.status}"))
    if state["Running"]:
        return _lost(done, f"the client ended with {done.status}, and the container was still running")
    if str(state["StartedAt"]).startswith("0001-") and status not in OF_THE_IMAGE:
        return _lost(replace(done, status=NOT_STARTED), f"it was not started: {state.get('Error') or status}")
    message = b"\nkilled: the container's memory limit was reached" if state.get("OOMKilled") else b""
    return replace(done, status=status, stderr_tail=done.stderr_tail + message)


@contextmanager
def _removed(made: _Made) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(*engine.failures()):
            made.client.api.remove_container(made.container.id, force=True, v=True)
