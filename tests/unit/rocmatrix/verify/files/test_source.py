"""The trainer in a tree against a checkout: the same files, byte for byte."""

import hashlib

import pytest

from rocmatrix.verify.files import source
from rocmatrix.verify.files.tree import TRAINER, Row, Tree
from tests.fixtures.trees import write

FILES = {"trainer/__main__.py": b"main", "trainer/data/a.csv": b"1,2"}
FOLDER = Row(kind="folder", mode=0o755, uid=0, gid=0)


def row(data, **more):
    return Row(**({"kind": "file", "mode": 0o644, "uid": 0, "gid": 0} | more), sha256=hashlib.sha256(data).digest())


def tree():
    made = Tree()
    made.rows = {f"{TRAINER}/{name}": row(data) for name, data in FILES.items()}
    made.rows |= {f"{TRAINER}/trainer": FOLDER, f"{TRAINER}/trainer/data": FOLDER, "/elsewhere": row(b"x")}
    return made


def places(made, root):
    return {place for finding in source.check(made, root).findings for place in finding.places}


def test_checkouts_files_pass_whatever_its_groups_may_do(tmp_path):
    write(tmp_path, FILES | {"trainer/__pycache__/a.pyc": b"code"})
    assert places(tree(), tmp_path) == set()
    made = tree()
    made.rows[f"{TRAINER}/trainer/__main__.py"] = row(b"main", mode=0o664)
    assert places(made, tmp_path) == set()


@pytest.mark.parametrize(
    ("name", "held", "place"),
    [
        ("trainer/__main__.py", row(b"evil"), "trainer/__main__.py"),
        ("trainer/__main__.py", None, "trainer/__main__.py"),
        ("trainer/__main__.py", Row(kind="link", mode=0o777, uid=0, gid=0, link="/x"), "trainer/__main__.py"),
        ("trainer/evil.py", row(b""), "trainer/evil.py"),
        ("torch.py", row(b""), "torch.py"),
        ("torch", FOLDER, "torch"),
        ("trainer/__pycache__", FOLDER, "trainer/__pycache__"),
        ("trainer/__main__.py", row(b"main", mode=0o646), "trainer/__main__.py (646 0:0)"),
        ("trainer/__main__.py", row(b"main", mode=0o2644), "trainer/__main__.py (2644 0:0)"),
        ("trainer/__main__.py", row(b"main", uid=10001), "trainer/__main__.py (644 10001:0)"),
        ("trainer/__main__.py", row(b"main", attributes=("security.capability",)), "security.capability)"),
    ],
)
def test_difference_of_any_kind_is_named(tmp_path, name, held, place):
    write(tmp_path, FILES)
    made = tree()
    made.rows.pop(f"{TRAINER}/{name}", None)
    made.rows |= {f"{TRAINER}/{name}": held} if held else {}
    (found,) = places(made, tmp_path)
    assert found.endswith(place)


def test_check_without_a_checkout_fails(tmp_path):
    assert source.check(Tree(), tmp_path).status == "failed"
