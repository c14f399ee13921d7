"""Containers of programs that are gone are told from those that run, and from those of other machines."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from rocmatrix.containers import orphan_cleanup
from rocmatrix.runtime import process_name


@pytest.fixture
def gone():
    """Return the label of a process that has ended."""
    code = "from rocmatrix.containers import orphan_cleanup as made; print(made.label()[made.LABEL])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {orphan_cleanup.LABEL: done.stdout.strip()}


def test_container_of_a_running_process_is_removed_by_no_other(gone):
    assert not orphan_cleanup.is_lost(orphan_cleanup.label())
    assert orphan_cleanup.is_lost(gone)


@pytest.mark.parametrize("label", ["", "1", "another host | boot | 1:1", "x"])
def test_container_that_names_no_process_of_this_host_is_not_lost(label):
    assert not orphan_cleanup.is_lost({orphan_cleanup.LABEL: label})


def test_process_of_an_earlier_boot_is_gone():
    named = f"{process_name.host()} | another boot | {process_name.process(os.getpid())}"
    assert orphan_cleanup.is_lost({orphan_cleanup.LABEL: named})


class Api:
    """An engine's containers: (id, labels, status, hours since it was made)."""

    def __init__(self, *rows):
        self.rows, self.removed = {row[0]: row for row in rows}, {}

    def containers(self, **_):
        return [{"Id": name, "Labels": labels} for name, labels, *_ in self.rows.values()]

    def inspect_container(self, name):
        _, _, status, hours = self.rows[name]
        at = f"{datetime.now(UTC) - timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}"
        return {"Created": at, "State": {"Status": status, "FinishedAt": at}}

    def remove_container(self, name, *, force, v):
        self.removed[name] = force


def test_lost_containers_go_at_once_and_unknown_ones_when_old(gone):
    unknown = {orphan_cleanup.LABEL: "1"}
    api = Api(
        ("lost-and-running", gone, "running", 0),
        ("own", orphan_cleanup.label(), "running", 0),
        ("kept", gone, "created", 0),
        ("unknown-and-new", unknown, "exited", 0),
        ("unknown-and-old", unknown, "exited", 1),
        ("unknown-and-running", unknown, "running", 5),
        ("own-export", orphan_cleanup.label(), "created", 48),
        ("own-and-ended", orphan_cleanup.label(), "exited", 48),
        ("elsewhere-export", unknown, "created", 23),
        ("elsewhere-and-forgotten", unknown, "created", 25),
    )
    orphan_cleanup.sweep(SimpleNamespace(api=api), keep="kept")
    assert api.removed == {"lost-and-running": True, "unknown-and-old": False, "elsewhere-and-forgotten": False}


def test_host_of_a_label_is_its_machine():
    assert orphan_cleanup.host_of(orphan_cleanup.label()) == os.uname().nodename
    assert orphan_cleanup.host_of({}) == ""
