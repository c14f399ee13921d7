"""Hygiene passes on a clean image, and fails on each stray that is planted."""

import pytest

from rocmatrix.verify import hygiene
from tests.fixtures.trees import entry

CLEAN = [
    entry("/tmp", b"", mode=0o1777, kind="folder"),
    entry("/cache", b"", mode=0o1777, kind="folder"),
    entry("/usr/bin/passwd", b"x", mode=0o755),
    entry("/var/mail", b"", mode=0o2775, gid=8, kind="folder"),
    entry("/opt/venv/lib/a/__pycache__/a.pyc", b"\xa7\r\r\n\1\0\0\0" + bytes(8)),
    entry("/usr/lib/python3/dist-packages/__pycache__/a.pyc", b"\xa7\r\r\n\0\0\0\0"),
    entry("/opt/venv/lib/x.dist-info/direct_url.json", b'{"url": "https://somewhere"}'),
    entry("/usr/bin/python3", b"", mode=0o777, kind="link"),
]


PLANTED = {
    "files where a build leaves rubbish": entry("/var/lib/apt/lists/list", b"x"),
    "a cache": entry("/root/.cache", b"", kind="folder"),
    "a wheel": entry("/opt/torch.whl", b"x"),
    "a history": entry("/root/.bash_history", b"x"),
    "open to all": entry("/opt/open", b"", mode=0o777, kind="folder"),
    "set-user-ID or set-group-ID": entry("/usr/bin/shell", b"x", mode=0o4755),
    "a device, pipe or socket": entry("/opt/pipe", b"", kind="other"),
    "a file capability or other attribute": entry("/usr/bin/env", b"x", attributes=("security.capability",)),
    "byte code outside the environment": entry("/opt/rocmatrix/trainer/__pycache__", b"", kind="folder"),
    "byte code with time stamps": entry("/opt/venv/lib/a/__pycache__/b.pyc", b"\xa7\r\r\n\0\0\0\0" + bytes(8)),
    "owned by a user that the image does not know": entry("/opt/mine", b"x", uid=1000),
    "a secret by its name": entry("/root/.docker/config.json", b"{}"),
    "a place on the builder's machine": entry("/opt/venv/x.dist-info/direct_url.json", b'{"url": "file:///home/me"}'),
}


def strays(found):
    collected = hygiene.HygieneScan()
    for one in found:
        collected.look(one)
    return hygiene.check(collected.found, files=len(found))


def test_clean_image_passes():
    assert strays(CLEAN).findings == ()
    assert strays(CLEAN).name == "hygiene"
    assert strays(CLEAN).summary == f"{len(hygiene.RULES)} rules on {len(CLEAN)} files"


@pytest.mark.parametrize(
    "there",
    [
        entry("/usr/bin/link", b"", mode=0o6777, kind="link"),  # the mode of a link is no one's
        entry("/opt/venv/lib/a/__pycache__/c.pyc", b"\xa7\r\r\n\1\0\0\0\5" + bytes(7)),
        entry("/opt/venv/lib/a.json", b'{"url": "file:///home/me"}'),
        entry("/opt/direct_url.json", b'{"url": "file:///home/me"}', kind="folder"),
    ],
)
def test_path_that_resembles_a_stray_is_none(there):
    assert strays([*CLEAN, there]).findings == ()


def test_hygiene_rules_are_each_broken_once_here():
    assert PLANTED.keys() == hygiene.RULES.keys()


@pytest.mark.parametrize("rule", PLANTED)
def test_planted_file_is_found(rule):
    (finding,) = strays([*CLEAN, PLANTED[rule]]).findings
    assert (finding.code, finding.what, finding.places) == ("RM217", rule, (PLANTED[rule].path,))


@pytest.mark.parametrize(
    ("path", "mode", "gid", "kind", "found"),
    [
        ("/usr/bin/su", 0o4755, 0, "file", True),
        ("/bin/su", 0o4755, 0, "file", True),  # where /bin is a folder of its own
        ("/usr/bin/chage", 0o2755, 42, "file", True),
        ("/usr/local/bin/su", 0o6755, 0, "file", True),
        ("/opt/venv/bin/tool", 0o4711, 0, "file", True),
        ("/usr/bin/su", 0o755, 0, "file", False),
        ("/var/local", 0o2775, 50, "folder", False),
        ("/var/local", 0o2775, 50, "file", True),
        ("/var/local", 0o2775, 8, "folder", True),
        ("/var/local", 0o6775, 50, "folder", True),
        ("/var/games", 0o2775, 50, "folder", True),
    ],
)
def test_set_id_is_allowed_on_two_folders_of_the_base_alone(path, mode, gid, kind, found):
    findings = strays([*CLEAN, entry(path, b"", mode=mode, gid=gid, kind=kind)]).findings
    assert [finding.places for finding in findings] == ([(path,)] if found else [])


@pytest.mark.parametrize("change", [{"mode": 0o777}, {"mode": 0o3777}, {"uid": 7}, {"gid": 7}])
def test_place_open_to_all_has_to_be_roots_and_sticky(change):
    planted = entry("/var/tmp", b"", kind="folder", **({"mode": 0o1777} | change))
    assert "open to all" in {finding.what for finding in strays([*CLEAN, planted]).findings}


@pytest.mark.parametrize(("numbers", "found"), [(("c", 1, 3), False), (("c", 1, 1), True), (("b", 1, 3), True)])
def test_nodes_are_known_by_their_numbers(numbers, found):
    node = entry("/dev/null", b"", mode=0o666, kind="other", device=numbers)
    assert bool(strays([*CLEAN, node]).findings) is found


def test_empty_file_list_fails():
    assert [finding.code for finding in strays([]).findings] == ["RM221"]
