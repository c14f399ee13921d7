"""Each step of fetching by itself: pip's whole command, what is remembered of a file, and what a refusal names.

pip is a STAND-IN, and so are the wheels.
"""

import hashlib
import io
import json
import os
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocmatrix.images import wheelhouse
from rocmatrix.images.pip_report import PATIENCE, platform_options
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import CPU

CONTENT = {"numpy": b"STAND-IN numpy", "torch": b"STAND-IN torch"}
INDEX = "https://index.example/whl"


@pytest.fixture(autouse=True)
def ledgers(tmp_path, monkeypatch):
    """Keep what is remembered of wheels with the test."""
    monkeypatch.setattr(wheelhouse, "LEDGERS", tmp_path / "x" / "hashes")


@pytest.fixture
def cell():
    """A cell of two wheels: one of the Python index, one of PyTorch's."""
    rows = [(file, wheel) for file, wheel in CPU.wheels if wheel.name in CONTENT]
    rows = [
        (file, wheel.model_copy(update={"sha256": hashlib.sha256(CONTENT[wheel.name]).hexdigest()}))
        for file, wheel in sorted(rows, key=lambda row: row[1].name)
    ]
    release = CPU.release.model_copy(update={"index": INDEX})
    return CPU.model_copy(update={"release": release, "wheels": tuple(rows)})


@pytest.fixture
def pip(cell, monkeypatch):
    """A pip that brings what the cell's lock names; `refusals` are its words, by the place in the list of calls."""
    found = SimpleNamespace(calls=[], requirements=[], temporary=[], refusals={})

    def run(argv, *, capture_output, text, check, env):
        assert (capture_output, text, check) == (True, True, False)
        assert os.environ.items() <= (env | {"TMPDIR": os.environ.get("TMPDIR", "")}).items()
        output = found.refusals.get(len(found.calls), "")
        target, requirement = (Path(argv[argv.index(word) + 1]) for word in ("--dest", "--requirement"))
        found.calls.append(argv)
        found.requirements.append(requirement.read_text(encoding="utf-8"))
        scratch = target.parent
        assert scratch.name.startswith(".fetch-")
        found.temporary.append(env["TMPDIR"] == str(scratch) == str(requirement.parent))
        if not output:
            name = found.requirements[-1].partition("=")[0]
            target.mkdir()
            (target / next(file for file, wheel in cell.wheels if wheel.name == name)).write_bytes(CONTENT[name])
        return SimpleNamespace(returncode=1 if output else 0, stderr=output)

    monkeypatch.setattr(wheelhouse.subprocess, "run", run)
    return found


def test_torch_is_fetched_first_each_with_its_hash_and_what_is_fetched_is_named(cell, pip, tmp_path, capsys):
    folder = tmp_path / "b" / "w"
    assert wheelhouse.fetch(cell, folder) == folder
    torch, numpy = ((file, wheel) for file, wheel in reversed(cell.wheels))
    assert pip.requirements == [
        f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for _, wheel in (torch, numpy)
    ]
    assert pip.temporary == [True, True]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        torch[0]: CONTENT["torch"],
        numpy[0]: CONTENT["numpy"],
    }
    stderr = capsys.readouterr().err
    assert stderr.splitlines() == [f"fetching {torch[0]}", f"fetching {numpy[0]}"]


def test_command_asks_for_one_wheel_of_the_images_python_without_a_cache(tmp_path):
    source = wheelhouse.Source(name="n", options=("--index-url", INDEX))
    assert wheelhouse.pip_argv(tmp_path / "r", python="3.11", source=source, target=tmp_path / "t") == [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir"),
        *("--no-deps", "--require-hashes", "--only-binary=:all:", *PATIENCE, *platform_options("3.11")),
        *("--index-url", INDEX, "--dest", str(tmp_path / "t"), "--requirement", str(tmp_path / "r")),
    ]


def test_torch_that_no_mirror_has_is_queried_of_its_own_index(cell, pip, tmp_path):
    pip.refusals = {0: "ERROR: no torch"}
    wheelhouse.fetch(cell, tmp_path / "w")
    first, second, third = pip.calls
    assert ["--index-url" in call for call in (first, second, third)] == [False, True, False]
    assert second[second.index("--index-url") + 1] == INDEX
    assert second[second.index("--python-version") + 1] == cell.python


def test_wheel_that_no_source_has_is_rm104_with_the_answer_of_each(cell, pip, tmp_path):
    pip.refusals = {0: "ERROR: no torch", 1: "ERROR: none either"}
    with pytest.raises(RocmatrixError, match="RM104") as caught:
        wheelhouse.fetch(cell, tmp_path / "w")
    torch = cell.wheels[1][0]
    assert (caught.value.what, caught.value.where) == (torch, str(tmp_path / "w"))
    assert caught.value.why == f"{wheelhouse.CONFIGURED.name}: no torch\n{INDEX}: none either"
    assert list((tmp_path / "w").iterdir()) == []


@pytest.mark.parametrize("number", [28, 122])
def test_full_disk_is_rm205_and_no_other_source_is_queried(cell, pip, tmp_path, number):
    pip.refusals = {0: f"ERROR: [Errno {number}] full"}
    with pytest.raises(RocmatrixError, match="RM205") as caught:
        wheelhouse.fetch(cell, tmp_path / "w")
    assert caught.value.where == str(tmp_path / "w")
    assert len(pip.calls) == 1


def test_file_that_pip_brought_instead_is_named(cell, tmp_path):
    file, wheel = cell.wheels[0]
    with pytest.raises(RocmatrixError, match="RM104") as caught:
        wheelhouse._arrived(tmp_path / file, wheel)
    assert caught.value.what == f"{file}: pip brought nothing instead"
    for name in ("b.whl", "a.whl"):
        (tmp_path / name).touch()
    with pytest.raises(RocmatrixError, match="RM104") as caught:
        wheelhouse._arrived(tmp_path / file, wheel)
    assert caught.value.what == f"{file}: pip brought a.whl, b.whl instead"


def test_other_bytes_are_rm103_with_the_folder_and_both_hashes(cell, tmp_path):
    file, wheel = cell.wheels[0]
    (tmp_path / file).write_bytes(b"other")
    for look in (lambda: wheelhouse._arrived(tmp_path / file, wheel), lambda: wheelhouse.check(cell, tmp_path)):
        with pytest.raises(RocmatrixError, match="RM103") as caught:
            look()
        assert (caught.value.what, caught.value.where) == (file, str(tmp_path))
        found = hashlib.sha256(b"other").hexdigest()
        assert caught.value.why == f"expected sha256 {wheel.sha256}\nfound    sha256 {found}"


def test_cell_without_a_lock_names_where_its_wheels_would_be(cell, tmp_path):
    with pytest.raises(RocmatrixError, match="RM102") as caught:
        wheelhouse.fetch(cell.model_copy(update={"wheels": ()}), tmp_path)
    assert caught.value.where == "matrix/locks.yaml"


def test_added_wheel_that_would_write_over_a_locked_one_is_rm110_after_the_fetch(cell, pip, tmp_path):
    rows = []
    for file, wheel in cell.wheels:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("torch/a.py", wheel.name)
        (tmp_path / file).write_bytes(packed.getvalue())
        rows.append((file, wheel.model_copy(update={"sha256": hashlib.sha256(packed.getvalue()).hexdigest()})))
    added = cell.model_copy(update={"wheels": tuple(rows), "added": (rows[0][0],)})
    with pytest.raises(RocmatrixError, match="RM110") as caught:
        wheelhouse.fetch(added, tmp_path)
    assert (caught.value.where, pip.calls) == (rows[0][0], [])
    assert wheelhouse.fetch(added.model_copy(update={"added": ()}), tmp_path) == tmp_path


def test_missing_wheels_are_listed_in_order(cell, tmp_path):
    assert wheelhouse.check(cell, tmp_path) == list(cell.wheels)
    file, wheel = cell.wheels[0]
    (tmp_path / file).write_bytes(CONTENT[wheel.name])
    assert wheelhouse.check(cell, tmp_path) == [cell.wheels[1]]


def test_hash_of_a_large_file_is_of_all_its_pieces(tmp_path):
    content = b"ab" * wheelhouse.CHUNK_BYTES
    (tmp_path / "a").write_bytes(content)
    assert wheelhouse.sha256(tmp_path / "a") == hashlib.sha256(content).hexdigest()


def test_large_file_is_not_held_in_memory_at_once():
    sizes = []

    class Pieces(io.BytesIO):
        def read(self, size=-1):
            sizes.append(size)
            return super().read(size)

    content = b"ab" * wheelhouse.CHUNK_BYTES
    path = SimpleNamespace(open=lambda mode: Pieces(content) if mode == "rb" else None)
    assert wheelhouse.sha256(path) == hashlib.sha256(content).hexdigest()
    assert set(sizes) == {wheelhouse.CHUNK_BYTES}


def test_leftovers_of_a_dead_fetch_are_removed_before_another(cell, pip, tmp_path):
    (tmp_path / "w" / ".fetch-dead").mkdir(parents=True)
    (tmp_path / "w" / ".fetch-dead" / "torch.whl").write_bytes(b"half")
    wheelhouse.fetch(cell, tmp_path / "w")
    assert sorted(path.name for path in (tmp_path / "w").iterdir()) == sorted(file for file, _ in cell.wheels)


@pytest.fixture
def kept(tmp_path):
    """A file, and the ledger of its folder with its hash."""
    path = tmp_path / "a"
    path.write_bytes(b"one")
    ledger = wheelhouse.Ledger(tmp_path)
    assert ledger.sha256(path) == hashlib.sha256(b"one").hexdigest()
    ledger.save()
    return path, ledger


def test_ledger_is_this_users_alone_and_names_what_a_change_alters(kept, tmp_path):
    path, ledger = kept
    status = path.stat()
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
    state = f"a 3 {times} {status.st_dev} {status.st_ino}"
    assert json.loads(ledger.path.read_text()) == {state: hashlib.sha256(b"one").hexdigest()}
    assert ledger.path.stat().st_mode & 0o777 == 0o600
    assert ledger.path == wheelhouse.LEDGERS / f"{hashlib.sha256(os.fsencode(tmp_path)).hexdigest()[:32]}.json"
    assert [each.name for each in wheelhouse.LEDGERS.iterdir()] == [ledger.path.name]


def test_ledger_is_written_again_for_a_file_more(kept, tmp_path):
    path, ledger = kept
    (tmp_path / "b").write_bytes(b"two")
    again = wheelhouse.Ledger(tmp_path)
    for each in (path, tmp_path / "b"):
        again.sha256(each)
    again.save()
    assert sorted(state[0] for state in json.loads(ledger.path.read_text())) == ["a", "b"]


@pytest.mark.parametrize(("mode", "believed"), [(0o701, True), (0o644, True), (0o602, False), (0o620, False)])
def test_ledger_is_believed_where_no_other_user_can_write_it(kept, tmp_path, mode, believed):
    path, ledger = kept
    ledger.path.write_text(json.dumps(dict.fromkeys(json.loads(ledger.path.read_text()), "kept")))
    ledger.path.chmod(mode)
    assert (wheelhouse.Ledger(tmp_path).sha256(path) == "kept") is believed


def test_folder_has_one_ledger_by_whatever_path_it_is_reached(kept, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    assert wheelhouse.Ledger(tmp_path / "link").path == kept[1].path


def test_ledger_answers_for_an_unchanged_file_and_is_not_written_again(kept, tmp_path, monkeypatch):
    path, ledger = kept
    ledger.path.chmod(0o400)
    monkeypatch.setattr(wheelhouse, "sha256", lambda _: pytest.fail("read again"))
    again = wheelhouse.Ledger(tmp_path)
    assert again.sha256(path) == hashlib.sha256(b"one").hexdigest()
    again.save()
    assert ledger.path.stat().st_mode & 0o777 == 0o400


def test_ledger_of_another_user_is_not_believed(kept, tmp_path, monkeypatch):
    path, ledger = kept
    ledger.path.write_text(json.dumps(dict.fromkeys(json.loads(ledger.path.read_text()), "forged")))
    assert wheelhouse.Ledger(tmp_path).sha256(path) == "forged"
    monkeypatch.setattr(wheelhouse.os, "geteuid", lambda: ledger.path.stat().st_uid + 1)
    assert wheelhouse.Ledger(tmp_path).sha256(path) == hashlib.sha256(b"one").hexdigest()


@pytest.mark.parametrize("content", [b"\xff", b"[" * 100_000, b"[1]"])
def test_ledger_that_is_none_is_left_out(kept, tmp_path, content):
    path, ledger = kept
    ledger.path.write_bytes(content)
    assert wheelhouse.Ledger(tmp_path).sha256(path) == hashlib.sha256(b"one").hexdigest()


def test_ledger_that_cannot_be_written_is_left_out(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"a file where the folder would be")
    ledger = wheelhouse.Ledger(tmp_path)
    ledger.sha256(tmp_path / "x")
    ledger.save()


def test_folder_is_held_while_it_is_filled(cell, pip, tmp_path, monkeypatch):
    held = []
    monkeypatch.setattr(wheelhouse.fcntl, "flock", lambda handle, how: held.append((os.fstat(handle).st_ino, how)))
    wheelhouse.fetch(cell, tmp_path / "w")
    assert held == [((tmp_path / "w").stat().st_ino, wheelhouse.fcntl.LOCK_EX)]
    wheelhouse.fetch(cell, tmp_path / "w")
    assert len(held) == 1
