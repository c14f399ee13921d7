"""Locks between checkouts that use one engine: tags are the engine's, and each checkout has a state of its own.

Two layers. A kernel lock on a file keeps programs of this machine apart, whatever their user, and ends with its
process. A mark on the engine, a volume of labels alone, keeps programs apart that do not share that file: containers
that were given the engine's socket, another machine through a tunnel. It is renewed while the program runs; one whose
program is known to be gone, or that was not renewed for LEASE by the engine's clock, no longer counts. Both save work
and cards: what a record names is known by the image's id, with a lock or without.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.containers import engine, orphan_cleanup
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.kernel_lock import HeldError, held

if TYPE_CHECKING:
    import docker

FOLDER = Path("/tmp")  # the one place that every user of a machine can write; a TMPDIR of one's own would part them
EVERYONE = 0o777
TAG, HOLDER, AT = "org.rocmatrix.tag", "org.rocmatrix.holder", "org.rocmatrix.at"
LEASE = timedelta(minutes=10)  # a busy engine was seen to answer after minutes
RENEW_SECONDS = 60.0
POLL_SECONDS = 1.0
SETTLE_SECONDS = 0.5  # two programs may find the same abandoned mark: the one whose mark is left then has it


def place(client: docker.DockerClient, name: str) -> Path:
    """Return the file of the lock on `name`, a tag, on the engine of `client`."""
    identity = str(client.info().get("ID") or "engine")
    folder = FOLDER / f"rocmatrix-engine-{''.join(c for c in identity if c.isalnum())[:32]}"
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        folder.chmod(EVERYONE)
    return folder / f"{_in_a_name(name)}.lock"


@contextmanager
def exclusive(client: docker.DockerClient, name: str, *, waiting: str = "") -> Iterator[None]:
    """Be the only one on this engine that works on `name`. Raises HeldError where another does.

    Where the engine does not answer or a lock cannot be kept, the body runs without it.

    Args:
        name: tag of an image, such as rocmatrix:NAME.
        waiting: message printed once while waiting for the lock; empty raises at once.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(*engine.failures()):
            stack.enter_context(held(place(client, name), waiting=waiting, open_to_all=True))
        with contextlib.suppress(*engine.failures()):
            stack.enter_context(_marked(client, name, waiting))
        yield


def is_taken(client: docker.DockerClient, name: str) -> bool:
    """Return whether another program works on `name`, on this machine or on another of this engine."""
    with contextlib.suppress(*engine.failures()):
        try:
            with held(place(client, name), open_to_all=True):
                return any(labels.get(TAG) == name for labels in _living(client))
        except HeldError:
            return True
    return False


@dataclass(kw_only=True)
class _Mark:
    """A mark of this program on the engine. `connect` opens a client of the renewing thread's own."""

    client: docker.DockerClient
    tag: str
    holder: str = field(default_factory=lambda: uuid.uuid4().hex)
    connect: Callable[[], docker.DockerClient] = engine.connect

    @property
    def volume(self) -> str:
        return f"rocmatrix-lock-{_in_a_name(self.tag)}"

    def take(self) -> str | None:
        """Make the mark unless one is there; return who has that, None where it is this one."""
        settle = _remove_abandoned(self.client)
        for pause in (0.0, SETTLE_SECONDS) if settle else (0.0,):
            time.sleep(pause)
            labels = self._put(self.client, self.volume)
            if labels.get(HOLDER) != self.holder:
                return (
                    f"a program on {orphan_cleanup.host_of(labels) or 'a machine'} of this engine, volume {self.volume}"
                )
        return None

    def _put(self, client: docker.DockerClient, volume: str) -> Mapping[str, str]:
        """Make a volume, which leaves one of that name as it is; return the labels of the one that is there."""
        labels = {TAG: self.tag, HOLDER: self.holder, AT: str(client.info()["SystemTime"]), **orphan_cleanup.label()}
        return client.api.create_volume(volume, labels=labels).get("Labels") or {}

    def renew(self, ended: threading.Event) -> None:
        """Make a newer volume every minute in place of the one before, as labels cannot be changed."""
        number = 0
        while not ended.wait(RENEW_SECONDS):
            with contextlib.suppress(*engine.failures(), RocmatrixError), contextlib.closing(self.connect()) as client:
                self._put(client, f"{self.volume}.{self.holder[:8]}.{number + 1}")
                number += 1  # before what may fail: one of the same name would keep the labels of its first time
                self._put(client, self.volume)  # a user may have pruned it, as no container uses it
                if number > 1:
                    client.api.remove_volume(f"{self.volume}.{self.holder[:8]}.{number - 1}")


@contextmanager
def _marked(client: docker.DockerClient, name: str, waiting: str) -> Iterator[None]:
    mark = _Mark(client=client, tag=name)
    _take(mark, waiting)
    ended = threading.Event()
    renewing = threading.Thread(target=mark.renew, args=(ended,), daemon=True)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()
        with contextlib.suppress(*engine.failures()):
            _remove(client, mark.holder)


def _take(mark: _Mark, waiting: str) -> None:
    reported = False
    while (other := mark.take()) is not None:
        if not waiting:
            raise HeldError(other)
        if not reported:
            print(f"{waiting} ({other}); waiting ...", file=sys.stderr, flush=True)
            reported = True
        time.sleep(POLL_SECONDS)


def _volumes(client: docker.DockerClient) -> list[tuple[str, Mapping[str, str]]]:
    """Return every mark of the engine: the volume's name and its labels."""
    found: list[dict[str, Any]] = client.api.volumes(filters={"label": HOLDER}).get("Volumes") or []
    return [(each["Name"], each.get("Labels") or {}) for each in found]


def _living(client: docker.DockerClient) -> list[Mapping[str, str]]:
    """Return the labels of the marks that count."""
    marks, now = [labels for _, labels in _volumes(client)], datetime.fromisoformat(client.info()["SystemTime"])
    newest: dict[str, datetime] = {}
    for labels in marks:
        at, holder = datetime.fromisoformat(labels[AT]), labels[HOLDER]
        newest[holder] = max(at, newest.get(holder, at))
    return [each for each in marks if not orphan_cleanup.is_lost(each) and now - newest[each[HOLDER]] <= LEASE]


def _remove_abandoned(client: docker.DockerClient) -> bool:
    """Remove the marks that no longer count; return whether there were any."""
    if not (marks := _volumes(client)):
        return False
    living = {labels[HOLDER] for labels in _living(client)}
    gone = {labels[HOLDER] for _, labels in marks} - living
    for holder in gone:
        _remove(client, holder)
    return bool(gone)


def _remove(client: docker.DockerClient, holder: str) -> None:
    import docker.errors

    for name, labels in _volumes(client):
        if labels[HOLDER] == holder:
            with contextlib.suppress(docker.errors.NotFound):  # another program found it abandoned, too
                client.api.remove_volume(name)


def _in_a_name(tag: str) -> str:
    return tag.replace(":", "_").replace("/", "_")
