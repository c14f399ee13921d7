"""The least room seen while an engine builds decides whether the disk was full."""

from types import SimpleNamespace

import pytest

from rocmatrix.images import disk_space
from rocmatrix.images.disk_space import LEAST_FREE, Room


def free(monkeypatch, *amounts):
    seen = iter(amounts)
    monkeypatch.setattr(disk_space.shutil, "disk_usage", lambda _: SimpleNamespace(free=next(seen)))


@pytest.mark.parametrize(
    ("amounts", "ran_out"),
    [([LEAST_FREE], False), ([LEAST_FREE - 1], True), ([10**12, LEAST_FREE - 1, 10**12], True), ([], False)],
)
def test_room_ran_out_where_it_was_too_little_at_any_time(tmp_path, monkeypatch, amounts, ran_out):
    free(monkeypatch, *amounts)
    room = Room(folder=tmp_path)
    for _ in amounts:
        room.measure()
    assert (room.least, room.ran_out) == (min(amounts, default=None), ran_out)


def test_disk_of_another_machine_is_not_measured(tmp_path):
    for folder in (None, tmp_path / "gone"):
        room = Room(folder=folder)
        room.measure()
        assert (room.least, room.ran_out) == (None, False)


@pytest.mark.parametrize(
    ("answer", "folder"),
    [({"DockerRootDir": "/var/lib/docker"}, "/var/lib/docker"), ({}, None), (OSError("gone"), None)],
)
def test_folder_is_where_the_engine_keeps_its_images(monkeypatch, answer, folder):
    def info():
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(disk_space.engine, "failures", lambda: (OSError,))
    found = disk_space.of_engine(SimpleNamespace(info=info)).folder
    assert (str(found) if found else None) == folder
