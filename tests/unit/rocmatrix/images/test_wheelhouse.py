"""The wheelhouse, with the real pip and STAND-IN wheels: what is wrong is named, and nothing half is left."""

import json
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rocmatrix.images import wheelhouse
from rocmatrix.runtime import console
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import CPU, GFX1100
from tests.fixtures.stand_ins import locked, stand_in_cell, stand_in_wheel

NOWHERE = "http://127.0.0.1:9/whl"  # the discard port: refused at once


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Return a folder that is the only package source pip knows."""
    folder = tmp_path / "served"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", NOWHERE)
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture(autouse=True)
def ledgers(tmp_path, monkeypatch):
    """Keep what is remembered of wheels with the test."""
    monkeypatch.setattr(wheelhouse, "LEDGERS", tmp_path / "hashes")
    return tmp_path / "hashes"


@pytest.fixture
def cell(served):
    """Return a cell of two wheels, both served: one of the Python index, one of PyTorch's."""
    return two_wheels(stand_in_cell(CPU, served))


@pytest.fixture
def stocked(cell, served, tmp_path):
    """Return a checked wheelhouse that holds what the cell's lock names."""
    folder = tmp_path / "stocked"
    folder.mkdir()
    for file in locked_names(cell):
        shutil.copy(served / file, folder)
    return wheelhouse.fetch(cell, folder)


def two_wheels(cell):
    names = {"tqdm", "torch"}
    release = cell.release.model_copy(update={"index": NOWHERE + "/cpu"})
    wheels = tuple(row for row in cell.wheels if row[1].name in names)
    assert {wheel.index for _, wheel in wheels} == {"python", "pytorch"}
    return cell.model_copy(update={"release": release, "wheels": wheels})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def locked_names(cell):
    return sorted(file for file, _ in cell.wheels)


def refuse_pip(monkeypatch):
    monkeypatch.setattr(wheelhouse, "_download", lambda file, *_: pytest.fail(f"{file} was fetched again"))


def test_default_folder_is_shared_by_the_cells_of_a_release(tmp_path):
    folder = wheelhouse.default_folder(tmp_path, GFX1100)
    assert folder == tmp_path / ".rocmatrix/wheelhouse/rocm6.3-torch2.7.1-py3.12"


def test_missing_wheels_are_fetched_once(cell, tmp_path, monkeypatch):
    folder = tmp_path / "w"
    assert wheelhouse.fetch(cell, folder) == folder
    assert names(folder) == locked_names(cell)
    refuse_pip(monkeypatch)
    wheelhouse.fetch(cell, folder)


def test_wheels_that_are_there_already_need_no_source(cell, served, monkeypatch):
    refuse_pip(monkeypatch)
    wheelhouse.fetch(cell, served)


def test_tampered_wheel_is_rm103_with_both_hashes(cell, stocked):
    file, wheel = cell.wheels[0]
    content = bytearray((stocked / file).read_bytes())
    content[-1] ^= 1
    (stocked / file).write_bytes(content)
    with pytest.raises(RocmatrixError, match="RM103") as caught:
        wheelhouse.fetch(cell, stocked)
    assert file in str(caught.value)
    assert wheel.sha256 in str(caught.value)
    assert wheelhouse.sha256(stocked / file) in str(caught.value)


def test_change_that_keeps_size_and_time_is_still_seen(cell, stocked):
    path = stocked / cell.wheels[0][0]
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    with pytest.raises(RocmatrixError, match="RM103"):
        wheelhouse.fetch(cell, stocked)


def test_unchanged_wheel_is_read_once(cell, stocked, monkeypatch):
    monkeypatch.setattr(wheelhouse, "sha256", lambda path: pytest.fail(f"{path.name} was read again"))
    wheelhouse.fetch(cell, stocked)


@pytest.mark.parametrize("damage", ["{", "[1]", '{"a": 1}', ""])
def test_damaged_ledger_costs_time_only(cell, stocked, damage):
    ledger = wheelhouse.Ledger(stocked).path
    assert ledger.is_file()
    ledger.write_text(damage.replace('"a"', f'"{cell.wheels[0][0]}"'))
    wheelhouse.fetch(cell, stocked)


def forged(ledger, folder, cell):
    """Write what a ledger would say if tampered wheels were the locked ones."""
    hashes = {}
    for file, wheel in cell.wheels:
        status = (folder / file).stat()
        times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
        for state in (f"{file} {status.st_size} {times} {status.st_ino}",
                      f"{file} {status.st_size} {times} {status.st_dev} {status.st_ino}"):  # fmt: skip
            hashes[state] = wheel.sha256
    ledger.parent.mkdir(exist_ok=True)
    ledger.write_text(json.dumps(hashes))


def test_ledger_handed_over_with_the_wheels_is_not_believed(cell, stocked):
    file = next(name for name in names(stocked) if name.startswith("tqdm"))
    (stocked / file).write_bytes(b"tampered")
    forged(stocked.with_name("stocked.hashes.json"), stocked, cell)
    forged(stocked / "hashes.json", stocked, cell)
    with pytest.raises(RocmatrixError, match="RM103"):
        wheelhouse.fetch(cell, stocked)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_ledger_writable_by_others_is_ignored(cell, stocked, mode):
    file = next(name for name in names(stocked) if name.startswith("tqdm"))
    (stocked / file).write_bytes(b"tampered")
    ledger = wheelhouse.Ledger(stocked).path
    forged(ledger, stocked, cell)
    ledger.chmod(mode)
    with pytest.raises(RocmatrixError, match="RM103"):
        wheelhouse.fetch(cell, stocked)


def test_ledger_that_is_a_link_is_ignored(cell, stocked, tmp_path):
    file = next(name for name in names(stocked) if name.startswith("tqdm"))
    (stocked / file).write_bytes(b"tampered")
    forged(tmp_path / "elsewhere.json", stocked, cell)
    ledger = wheelhouse.Ledger(stocked).path
    ledger.unlink()
    ledger.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(RocmatrixError, match="RM103"):
        wheelhouse.fetch(cell, stocked)


@pytest.mark.parametrize("content", [b"other bytes", b""])
def test_pip_that_brings_other_bytes_is_caught_by_the_look_after_it(cell, tmp_path, content):
    file, wheel = cell.wheels[0]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(RocmatrixError, match="RM103"):
        wheelhouse._arrived(tmp_path / file, wheel)
    with pytest.raises(RocmatrixError, match="RM104"):
        wheelhouse._arrived(tmp_path / "absent.whl", wheel)


def test_source_with_other_bytes_is_not_accepted(cell, served, tmp_path):
    row = next(wheel for _, wheel in cell.wheels if wheel.name == "tqdm")
    stand_in_wheel("tqdm", row.version, served, content="STAND_IN = 'tampered'\n")
    with pytest.raises(RocmatrixError, match=r"RM104[\s\S]*tqdm[\s\S]*DO NOT MATCH THE HASHES"):
        wheelhouse.fetch(cell, tmp_path / "w")
    assert not any("tqdm" in name for name in names(tmp_path / "w"))


def test_unreachable_index_is_a_clear_error_in_seconds(cell, served, tmp_path):
    torch = next(file for file, wheel in cell.wheels if wheel.index == "pytorch")
    (served / torch).unlink()
    started = time.monotonic()
    with pytest.raises(RocmatrixError, match="RM104") as caught:
        wheelhouse.fetch(cell, tmp_path / "w")
    assert time.monotonic() - started < 15
    assert torch in str(caught.value)
    assert wheelhouse.CONFIGURED.name in caught.value.why
    assert NOWHERE in caught.value.why
    assert "refused" in caught.value.why
    assert names(tmp_path / "w") == []


def test_torch_index_is_queried_for_torch_only():
    for _, wheel in GFX1100.wheels:
        sources = [source.name for source in wheelhouse.sources(wheel, GFX1100.release)]
        assert sources[0] == wheelhouse.CONFIGURED.name
        assert sources[1:] == ([GFX1100.release.index] if wheel.index == "pytorch" else [])


def test_pip_resolves_for_the_python_of_the_image(tmp_path):
    argv = wheelhouse.pip_argv(tmp_path / "r", python="3.12", source=wheelhouse.CONFIGURED, target=tmp_path)
    assert argv[argv.index("--python-version") + 1] == "3.12"
    assert {"cp312", "abi3", "none", "manylinux_2_28_x86_64", "--require-hashes", "--no-deps"} <= set(argv)


def test_file_of_another_name_is_not_taken(cell, served, tmp_path):
    file, wheel = cell.wheels[0]
    renamed = cell.model_copy(update={"wheels": ((file.replace("py3-none", "py2.py3-none"), wheel),)})
    with pytest.raises(RocmatrixError, match=r"RM104[\s\S]*instead"):
        wheelhouse.fetch(renamed, tmp_path / "w")
    assert names(tmp_path / "w") == []


def test_cell_without_a_lock_is_rm102(cell, tmp_path):
    with pytest.raises(RocmatrixError, match="RM102"):
        wheelhouse.fetch(cell.model_copy(update={"wheels": ()}), tmp_path / "w")
    assert not (tmp_path / "w").exists()


def test_leftovers_of_a_killed_fetch_are_removed(cell, tmp_path):
    folder = tmp_path / "w"
    (folder / ".fetch-dead").mkdir(parents=True)
    (folder / ".fetch-dead" / "torch.whl").write_bytes(b"half")
    wheelhouse.fetch(cell, folder)
    assert names(folder) == locked_names(cell)


@pytest.fixture
def small_disk(tmp_path):
    """Mount a disk of 1 MB; what is on it is gone afterwards."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = os.geteuid() == 0 and shutil.which("mount")
    if not mounted or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=False).returncode:
        pytest.skip("mounting a small disk needs root and CAP_SYS_ADMIN")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def test_full_disk_is_rm205_and_leaves_nothing_half_written(cell, served, small_disk):
    big = stand_in_wheel("torch", "9.9", served, content=f"NOISE = '{os.urandom(1_000_000).hex()}'\n")
    full = cell.model_copy(update={"wheels": (locked(big, cell.wheels[0][1].model_copy(update={"version": "9.9"})),)})
    with pytest.raises(RocmatrixError, match="RM205") as caught:
        wheelhouse.fetch(full, small_disk / "w")
    assert big.name in str(caught.value)
    assert names(small_disk / "w") == []


def test_read_only_place_is_rm206(cell, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(OSError, match="Read-only") as caught:
        wheelhouse.fetch(cell, small_disk / "w")
    assert console.known(caught.value).code == "RM206"


def test_complete_read_only_wheelhouse_is_used(cell, served, small_disk, monkeypatch):
    folder = small_disk / "w"
    shutil.copytree(served, folder, ignore=lambda _, files: set(files) - set(locked_names(cell)))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    refuse_pip(monkeypatch)
    assert wheelhouse.fetch(cell, folder) == folder


def test_two_fetches_at_once_do_not_disturb_each_other(cell, tmp_path):
    folder = tmp_path / "w"
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: wheelhouse.fetch(cell, folder), range(2)))
    assert results == [folder, folder]
    assert names(folder) == locked_names(cell)


def test_hash_is_the_files(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert wheelhouse.sha256(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
