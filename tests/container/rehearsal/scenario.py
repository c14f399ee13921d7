"""What a scenario of the rehearsal breaks the chain with, and what it holds the chain to afterwards."""

import io
import sqlite3
import subprocess
from contextlib import closing, contextmanager, suppress

from rocmatrix.containers import engine, label_integrity, orphan_cleanup
from rocmatrix.images import labels
from tests.container.rehearsal import checkout as making
from tests.container.rehearsal.proxy import Proxy

TAG = f"rocmatrix:simulated-{making.GFX1100}"
CANDIDATE = f"rocmatrix:night-simulated-{making.GFX1100}"
PROBES = dict.fromkeys(("blas", "conv"), "fail")
GREEN = ("two-gpu",)
IMPATIENT = {"rocmatrix.evidence.schema.WAIT_SECONDS": 0.5}


class Play:
    """One scenario's means: the checkout, the engine, and what the tag meant when it began."""

    def __init__(self, checkout, client, folder):
        self.checkout, self.client, self.folder = checkout, client, folder
        self.before = self.tag

    @property
    def tag(self):
        found = engine.image(self.client, TAG)
        return found and found.id

    def says(self, level, *failures, moved=False):
        """Hold level, failures, page and tag against what is true. Where it `moved`, the tag is the newest record's."""
        truth = self.checkout.truth()
        assert (truth.level, truth.failures) == (level, list(failures)), self.checkout.explained(truth)
        assert (self.tag == self.before) or moved
        assert not moved or self.tag == truth.records[-1]["image"]
        return truth

    def proxied(self, seen):
        return Proxy(self.folder / "engine.sock", seen)

    def paused_night(self, probe="conv", **more):
        self.checkout.play(pause=probe)
        night = self.checkout.begin_night(**more)
        night.until(self.checkout.paused.exists)
        return night

    def jobs(self, **filters):
        """Return the containers of simulated images: other tests' jobs may run on the same engine."""
        named = {"label": [orphan_cleanup.LABEL, labels.SIMULATED]}
        return self.client.containers.list(filters=named, ignore_removed=True, **filters)


def failed_without_verdict(play):
    """The probes of a lost suite: all that were asked for, for none came back."""
    probes = making.json.loads((play.checkout.place / "trainer/probes.json").read_text())
    return [probe["probe"] for probe in probes]


@contextmanager
def locked(path, seconds=0.0):
    """Hold the evidence file as a writer that does not end."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def merge_journal(path):
    """Write what a killed night left in SQLite's journal into the evidence file itself."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


@contextmanager
def small_disk(folder, *, kilobytes, content=None):
    """Mount a file system over a folder, with what is in it and room for some kilobytes more."""
    kept = [path for path in folder.iterdir() if path.is_file()] if content is None else content
    saved = {path.name: path.read_bytes() for path in kept}
    # a killed night leaves a journal that is not merged yet: of one to four megabytes
    size = kilobytes + sum(-(-len(data) // 4096) * 4 for data in saved.values())
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(folder)], check=True)
    try:
        for name, data in saved.items():
            (folder / name).write_bytes(data)
        yield
        back = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "filler"}
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    for name in saved.keys() - back.keys():  # a journal of SQLite's that is done with would be replayed
        (folder / name).unlink()
    for name, data in back.items():
        (folder / name).write_bytes(data)


def fill(folder):
    with suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)


def forged(client, *, sealed):
    """Return an image made of the candidate with the trainer changed, under the same labels."""
    text = f"FROM {CANDIDATE}\nUSER 0\nRUN echo '# EVIL' >> /opt/rocmatrix/trainer/__init__.py\nUSER 10001:10001\n"
    tag = "rocmatrix:simulated-forged"
    client.images.build(fileobj=io.BytesIO(text.encode()), tag=tag, rm=True)
    if sealed:
        label_integrity.put(client, tag)
    return client.images.get(tag)
