"""Byte code against its source, with this Python: the same passes however it was written, anything else does not."""

import importlib.util
import json
import marshal
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from rocmatrix.verify.files import recompile

SOURCE = b"""
from __future__ import annotations
import os
NAMES = {"a", "b", ("c", 1, 2.5, 3j)}
BIG = 123456789012345678901234567890
def f(x, /, y=1, *, z: int = 2, **more):
    class Inner:
        text = "\xc3\xa4\xe2\x82\xac"; raw = b"bytes"; piece = os.sep
        def method(self): return lambda: (x, y, ...)
    return [i for i in range(x) if i in {1, 2, 3}][1:2], Inner, f"{y!r}" if y else None
async def g():
    async with f(1) as h:
        yield h
"""
PATH = "/opt/venv/lib/x.py"


def compiled(source=SOURCE, *, path=PATH, given=None, flags=1, code=None):
    code = code or compile(source, path, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + flags.to_bytes(4, "little")
    if flags == 0:
        head += bytes(4) + len(given or source).to_bytes(4, "little")
    else:
        head += importlib.util.source_hash(given or source)
    return head + marshal.dumps(code)


def test_byte_code_of_the_source_passes():
    assert recompile.difference(SOURCE, compiled(), PATH) is None
    assert recompile.difference(SOURCE, compiled(flags=0), PATH) is None


def test_objects_shared_in_another_way_do_not_matter():
    """Version 2 of the format shares nothing, later ones what happened to be shared in the process that wrote."""
    code = compile(SOURCE, PATH, "exec", dont_inherit=True)
    plain = compiled()[:16] + marshal.dumps(code, 2)
    assert plain != compiled()
    assert recompile.canonical(marshal.dumps(code, 2)) == recompile.canonical(marshal.dumps(code))
    assert recompile.difference(SOURCE, plain, PATH) is None


CHANGES = {
    "a constant": SOURCE.replace(b"y=1", b"y=2"),
    "a name": SOURCE.replace(b"os.sep", b"os.sop"),
    "a statement more": SOURCE + b"import evil\n",
    "a line": b"\n" + SOURCE,
    "a text": SOURCE.replace(b"\xc3\xa4", b"\xc3\xb6"),
    "a member of a set": SOURCE.replace(b"{1, 2, 3}", b"{1, 2, 4}"),
    "a number of the same size": SOURCE.replace(b"2.5", b"3.5"),
    "a large number": SOURCE.replace(b"12345678901234567890", b"12345678901234567899", 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_code_of_another_source_under_this_ones_hash_is_found(change):
    assert CHANGES[change] != SOURCE
    stored = compiled(CHANGES[change], given=SOURCE)
    assert recompile.difference(SOURCE, stored, PATH) == "not what its source compiles to"


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (compiled(path="/elsewhere.py"), "not what its source compiles to"),
        (compiled(given=b"x = 1"), "of another source"),
        (compiled(flags=0, given=b"x = 1"), "of another source"),
        (compiled(flags=3), "named in another way than by time or unchecked hash"),
        (b"\0\0\r\n" + compiled()[4:], "of another Python"),
        (compiled() + b"N", "no code: bytes follow the code"),
        (compiled()[:-3], "no code: the file ends too early"),
        (compiled()[:16], "no code: the file ends too early"),
        (compiled()[:16] + b"?", "no code: an object of kind '?'"),
        (compiled()[:16] + b"r\x05\0\0\0", "no code: a reference to nothing"),
        (compiled()[:16] + b")\x01" * 10_000 + b"N", "no code: "),
        (compiled()[:16] + b"(\xff\xff\xff\x7f", "no code: the file ends too early"),
        (b"", "of another Python"),
    ],
)
def test_anything_else_is_refused_without_unmarshalling(stored, words, monkeypatch):
    monkeypatch.setattr(marshal, "loads", lambda *_: pytest.fail("unmarshalled"))
    assert recompile.difference(SOURCE, stored, PATH).startswith(words)


def test_code_of_a_source_that_does_not_compile_is_refused():
    broken = b"def ("
    assert recompile.difference(broken, compiled(given=broken), PATH) == "of a source that does not compile"


def test_program_compares_a_tree_and_names_what_differs(tmp_path):
    for name in ("good", "dotted.name", "bad", "gone"):
        path = tmp_path / f"{name}.py"
        path.write_text(f"NAME = {name!r}\n")
        py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    cached = Path(importlib.util.cache_from_source(tmp_path / "bad.py"))
    cached.write_bytes(cached.read_bytes().replace(b"bad", b"sad"))
    (tmp_path / "gone.py").unlink()
    program = Path(recompile.__file__).read_text()
    command = [sys.executable, "-I", "-S", "-B", "-X", "pycache_prefix=/nonexistent", "-c", program, str(tmp_path)]
    document = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert document["compared"] == 4
    assert {Path(path).name.split(".")[0] for path, _ in document["different"]} == {"bad", "gone"}
