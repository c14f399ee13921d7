"""Byte code is compared once for the same sources and interpreter; the engine is a STAND-IN that prints an outcome."""

import hashlib
import json
from types import SimpleNamespace

import pytest
import requests

from rocmatrix.containers import orphan_cleanup
from rocmatrix.runtime.paths import RECOMPILE
from rocmatrix.verify.files import byte_code
from rocmatrix.verify.files.tree import Row, Tree

COMPILED = "/opt/venv/lib/python3.12/__pycache__/os.cpython-312.pyc"


def tree(*more, digest=b"1"):
    made = Tree()
    about = {"mode": 0o644, "uid": 0, "gid": 0}
    made.rows = {path: Row(kind="file", sha256=digest, **about) for path in (COMPILED, *more)}
    return made


class Engine:
    """Its containers print `output` and end with `status`, or fail with `failure`."""

    def __init__(self, output, status=0, failure=None):
        self.output, self.status, self.failure = output, status, failure
        self.made, self.removed, self.steps = [], 0, []
        self.containers = SimpleNamespace(create=self.create)

    def create(self, image, command, **settings):
        self.made.append((image, settings))
        self.steps = [command]
        return SimpleNamespace(
            start=lambda: self.steps.append("start"), wait=self.wait, logs=self.logs, remove=self.remove
        )

    def wait(self, *, timeout):
        self.steps.append(timeout)
        if self.failure:
            raise self.failure
        return {"StatusCode": self.status}

    def logs(self, *, stdout, stderr):
        assert (stdout, stderr) == (True, False)
        return self.output if isinstance(self.output, bytes) else self.output.encode()

    def remove(self, *, force):
        assert force is True
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
    expected = {"network_disabled": True, "read_only": True, "cap_drop": ["ALL"], "user": "65534:65534"}
    assert expected.items() <= settings.items()


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
        ("[1]", 0, "ended with 0"),
        ("{}", 0, "ended with 0"),
        ("no JSON", 0, "gave no answer"),
    ],
)
def test_outcome_that_is_not_a_whole_comparison_is_a_finding_and_never_noted(tmp_path, output, status, words):
    engine = Engine(output, status)
    for _ in range(2):
        (finding,) = check(engine, tmp_path).findings
        assert (finding.code, words in finding.what) == ("RM664", True)
    assert (len(engine.made), engine.removed) == (2, 2)


def test_comparison_is_the_images_own_python_with_everything_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(orphan_cleanup, "label", lambda: {"owner": "test"})
    engine = Engine(b"a warning\nanother \xff\n" + SOUND.encode())
    found = check(engine, tmp_path)
    assert (found.name, found.summary, found.findings) == (
        "byte code", "1 files, compiled again by the image's Python", ()
    )  # fmt: skip
    program = ["-I", "-S", "-B", "-X", "pycache_prefix=/nonexistent", "-c", RECOMPILE.read_text(encoding="utf-8")]
    roots = ["/opt/venv/lib", "/usr/lib", "/usr/share", "/usr/local"]
    assert engine.steps == [[*program, *roots], "start", 600]
    assert engine.made[0][1] == {
        "entrypoint": ["/usr/bin/python3"], "user": "65534:65534", "working_dir": "/", "network_disabled": True,
        "read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges"], "mem_limit": 4 * 1024**3,
        "pids_limit": 256, "labels": {"owner": "test"},
    }  # fmt: skip


def test_comparison_that_the_engine_loses_is_a_finding_and_its_container_removed(tmp_path):
    engine = Engine("", failure=requests.ConnectionError("read timed out"))
    (finding,) = check(engine, tmp_path).findings
    assert (finding.what, engine.removed) == ("the comparison gave no answer: read timed out", 1)


def test_different_byte_code_and_a_count_that_is_short_are_both_named(tmp_path):
    (different, short) = check(
        Engine(json.dumps({"compared": 2, "different": [["/a", "b"], ["/c", "d"]]})), tmp_path
    ).findings
    assert (different.what, different.places) == ("not its source's", ("/a (b)", "/c (d)"))
    assert (short.code, short.what) == ("RM664", "2 files were compared of 1")


def test_image_that_is_not_compared_states_its_count_and_why(tmp_path):
    made = tree("/usr/lib/__pycache__/a.pyc", "/usr/lib/__pycache__/b.pyc")
    skipped = check(Engine(SOUND), tmp_path, made, clean=False)
    assert (skipped.name, skipped.summary, skipped.findings) == ("byte code", "3 files", ())
    assert skipped.notes == ("byte code was not compared: it is, once nothing else is wrong with the image",)
    engine = Engine(json.dumps({"compared": 3}))
    assert check(engine, tmp_path, made).summary.startswith("3 files, ")
    again = check(engine, tmp_path, made)
    assert (again.name, again.summary) == (
        "byte code",
        "3 files, compared before with the same sources and interpreter",
    )


def test_outcome_is_noted_below_the_root_by_a_digest_of_all_that_decides(tmp_path):
    odd = b"/usr/lib/\xff.py".decode("utf-8", "surrogateescape")
    made = tree(odd, "/usr/bin/python3", "/opt/venv/a.py", "/opt/venvs", "/etc/a")
    made.rows["/usr/link"] = Row(kind="link", mode=0o777, uid=0, gid=0)
    decisive = sorted([COMPILED, odd, "/usr/bin/python3", "/opt/venv/a.py"])
    expected = hashlib.sha256(RECOMPILE.read_bytes())
    for path in decisive:
        expected.update(path.encode(errors="surrogateescape") + b"\0" + b"1")
    for _ in range(2):  # the folder may be there
        check(Engine(SOUND), tmp_path, made)
        (noted,) = (tmp_path / ".rocmatrix" / "byte-code").iterdir()
        assert (noted.name, noted.is_file()) == (expected.hexdigest(), True)
        noted.unlink()


def test_outcome_that_cannot_be_noted_counts_all_the_same(tmp_path):
    (tmp_path / ".rocmatrix").write_text("no folder")
    assert check(Engine(SOUND), tmp_path).findings == ()


def test_byte_code_is_what_a_python_of_the_system_or_environment_would_read():
    others = ("/usr/lib/a.pyc", "/home/__pycache__/a.cpython-312.pyc", "/usr/lib/__pycache__/a.py")
    made = tree(*others)
    made.rows["/usr/lib/__pycache__/l.pyc"] = Row(kind="link", mode=0o777, uid=0, gid=0)
    assert list(byte_code._byte_code(made)) == [COMPILED]
    read = [f"{root}/__pycache__/a.cpython-312.pyc" for root in ("/usr/lib/python3", "/usr/share/x", "/usr/local/lib")]
    assert list(byte_code._byte_code(tree(*read))) == [COMPILED, *read]
