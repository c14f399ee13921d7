"""Byte code is compared once for the same sources and interpreter; the engine is a STAND-IN that prints an outcome."""

import json
from types import SimpleNamespace

import pytest

from rocmatrix.verify.files import byte_code
from rocmatrix.verify.files.tree import Row, Tree

COMPILED = "/opt/venv/lib/python3.12/__pycache__/os.cpython-312.pyc"


def tree(*more, digest=b"1"):
    made = Tree()
    about = {"mode": 0o644, "uid": 0, "gid": 0}
    made.rows = {path: Row(kind="file", sha256=digest, **about) for path in (COMPILED, *more)}
    return made


class Engine:
    """Its containers print `output` and end with `status`."""

    def __init__(self, output, status=0):
        self.output, self.status, self.made, self.removed = output, status, [], 0
        self.containers = SimpleNamespace(create=self.create)

    def create(self, image, command, **settings):
        self.made.append((image, settings))
        return SimpleNamespace(
            start=lambda: None,
            wait=lambda timeout: {"StatusCode": self.status},
            logs=lambda **_: self.output.encode(),
            remove=self.remove,
        )

    def remove(self, *, force):
        self.removed += 1


def check(engine, tmp_path, made=None, *, clean=True):
    return byte_code.check(engine, "sha256:i", made or tree(), root=tmp_path, clean=clean)


SOUND = json.dumps({"compared": 1, "different": []})


def test_compared_image_is_noted_and_started_once(tmp_path):
    engine = Engine(f"a warning\n{SOUND}")
    assert check(engine, tmp_path).findings == ()
    assert "compared before" in check(engine, tmp_path).summary
    assert (len(engine.made), engine.removed) == (1, 1)
    check(engine, tmp_path, tree(digest=b"2"))  # another source under the same path
    assert len(engine.made) == 2


def test_container_that_compares_has_no_network_no_rights_and_a_root_it_cannot_write(tmp_path):
    engine = Engine(SOUND)
    check(engine, tmp_path)
    ((image, settings),) = engine.made
    assert image == "sha256:i"
    wanted = {"network_disabled": True, "read_only": True, "cap_drop": ["ALL"], "user": "65534:65534"}
    assert wanted.items() <= settings.items()


def test_image_with_other_findings_is_not_started(tmp_path):
    engine = Engine(SOUND)
    found = check(engine, tmp_path, clean=False)
    assert (found.skipped, engine.made) == (True, [])


@pytest.mark.parametrize(
    ("output", "status", "words"),
    [
        (json.dumps({"compared": 1, "different": [[COMPILED, "another code"]]}), 0, "not its source's"),
        (json.dumps({"compared": 0, "different": []}), 0, "0 files were compared of 1"),
        (json.dumps({"problem": "no such folder"}), 0, "no such folder"),
        (SOUND, 1, "ended with 1"),
        ("", 0, "ended with 0"),
        ("[]", 0, "ended with 0"),
        ("no JSON", 0, "gave no answer"),
    ],
)
def test_outcome_that_is_not_a_whole_comparison_is_a_finding_and_never_noted(tmp_path, output, status, words):
    engine = Engine(output, status)
    for _ in range(2):
        (finding,) = check(engine, tmp_path).findings
        assert (finding.code, words in finding.what) == ("RM664", True)
    assert (len(engine.made), engine.removed) == (2, 2)


def test_byte_code_is_what_a_python_of_the_system_or_environment_would_read():
    others = ("/usr/lib/a.pyc", "/home/__pycache__/a.cpython-312.pyc", "/usr/lib/__pycache__/a.py")
    assert list(byte_code._byte_code(tree(*others))) == [COMPILED]
