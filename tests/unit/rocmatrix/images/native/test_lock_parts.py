"""A lock in parts: each entry whole and in one of them."""

import pytest

from rocmatrix.images.native.lock_parts import parts_of
from rocmatrix.runtime.paths import ROOT

LOCK = """# made by a program
a==1 \\
    --hash=sha256:00 \\
    --hash=sha256:01
    # via b
B-c==2 ; python_version < '3.12' \\
    --hash=sha256:02
7zip==3 \\
    --hash=sha256:03"""


def test_entries_come_whole_with_their_hashes_and_the_head_goes():
    one, other = parts_of(LOCK, 2)
    hashes = ["    --hash=sha256:00 \\", "    --hash=sha256:01"]
    assert one.splitlines() == ["a==1 \\", *hashes, "    # via b", "7zip==3 \\", "    --hash=sha256:03"]
    assert other == "B-c==2 ; python_version < '3.12' \\\n    --hash=sha256:02\n"


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_parts_of_the_committed_lock_hold_each_line_of_it_once(count):
    lock = (ROOT / "requirements/dev.txt").read_text()
    parts = parts_of(lock, count)
    assert len(parts) == count
    assert sorted("".join(parts).splitlines()) == sorted(line for line in lock.splitlines() if not line.startswith("#"))


def test_fewer_entries_than_parts_make_fewer_parts():
    assert [part.split("=")[0] for part in parts_of(LOCK, 9)] == ["a", "B-c", "7zip"]
    assert parts_of("# nothing\n", 2) == []
