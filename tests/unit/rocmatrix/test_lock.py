"""What pip is asked for is the image's Python and platform; what it answers is read exactly."""

import shutil
from pathlib import Path

import pytest

from rocmatrix import lock, matrix_file
from rocmatrix.errors import RocmatrixError

ROOT = Path(__file__).resolve().parents[3]
MATRIX = matrix_file.load(ROOT)

REPORT = {
    "version": "1",
    "install": [
        {
            "download_info": {
                "url": "https://index.example/a/b/numpy-2.4.6-cp312-cp312-manylinux_2_28_x86_64.whl",
                "archive_info": {"hashes": {"sha256": "ab" * 32}},
            },
            "metadata": {"name": "numpy", "version": "2.4.6"},
        }
    ],
}


def test_pip_is_asked_for_the_images_platform(tmp_path):
    argv = lock.pip_argv(["numpy"], python="3.12", report=tmp_path / "r", target=tmp_path / "t")
    assert argv[argv.index("--python-version") + 1] == "3.12"
    assert "cp312" in argv
    assert "manylinux_2_28_x86_64" in argv
    assert {"--dry-run", "--only-binary=:all:"} <= set(argv)


def test_a_report_gives_file_version_and_hash():
    (row,) = lock.parse_report(REPORT)
    assert (row.file, row.version, row.sha256) == (
        "numpy-2.4.6-cp312-cp312-manylinux_2_28_x86_64.whl",
        "2.4.6",
        "ab" * 32,
    )


def test_a_resolver_that_gives_up_is_rm105(monkeypatch):
    class Failed:
        returncode, stderr = 1, "no versions of numpy satisfy this"

    monkeypatch.setattr(lock.subprocess, "run", lambda *args, **kwargs: Failed())
    with pytest.raises(RocmatrixError, match="RM105") as caught:
        lock.resolve(MATRIX.releases[0], "3.12")
    assert "no versions of numpy" in str(caught.value)


LOCKED = [cell for cell in MATRIX.cells if cell.unlocked_because is None]


def test_every_locked_cell_has_a_complete_lock():
    assert len(LOCKED) >= 12
    for cell in LOCKED:
        names = {wheel.name.lower().replace("_", "-") for _, wheel in cell.wheels}
        missing = {*lock.TRAINER_REQUIREMENTS, *lock.TORCH_REQUIREMENTS, "torch"} - names
        assert not missing, (cell.name, missing)
        assert (cell.release.rocm is None) != any("triton" in name for name in names), cell.name


def test_every_wheel_of_a_cell_fits_its_python():
    for cell in MATRIX.cells:
        tag = "cp" + cell.python.replace(".", "")
        for file, _ in cell.wheels:
            assert f"-{tag}-" in file or "-abi3-" in file or "-py3-none-" in file or "-py2.py3-" in file, file


def test_locking_keeps_recorded_torch_wheels_and_writes_what_the_loader_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "resolve", lambda release, python: lock.parse_report(REPORT))
    shutil.copytree(ROOT / "matrix", tmp_path / "matrix")
    shutil.copy(ROOT / "matrix.yaml", tmp_path)
    assert set(lock.lock(MATRIX, tmp_path)) == {cell.release.name for cell in LOCKED}
    again = matrix_file.load(tmp_path)
    assert again.locks.keys() == MATRIX.locks.keys()
    for cell in (again.cell(cell.name) for cell in LOCKED):
        files = [file for file, _ in cell.wheels]
        assert any(file.startswith("torch-") for file in files)
        assert REPORT["install"][0]["download_info"]["url"].rsplit("/", 1)[1] in files


def test_a_lock_with_torch_and_triton_alone_does_not_look_complete():
    for name, pythons in MATRIX.locks.items():
        for python, files in pythons.items():
            release = MATRIX.release_by_name[name]
            cell = next((c for c in MATRIX.cells if c.release.name == name), None)
            alone = all(MATRIX.wheels[file].index == "pytorch" for file in files)
            if cell is not None:
                assert (MATRIX.for_python(cell, python) is None) == alone, (name, python)
            if alone:
                assert [MATRIX.wheels[file].name for file in files].count("torch") == 1
                assert {MATRIX.wheels[file].version for file in files} >= {f"{release.torch}+rocm{release.rocm}"}


def test_locking_leaves_a_release_without_a_torch_hash_unlocked(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(lock, "resolve", lambda release, python: asked.append(release.name) or [])
    lock.lock(MATRIX, tmp_path)
    assert asked
    assert not {"rocm10.0-torch2.13.0", "rocm7.14-torch2.14.1"} & set(asked)


def test_hashes_of_the_test_channel_are_not_recorded():
    recorded = {wheel.sha256 for wheel in MATRIX.wheels.values()}
    released = "db65d489c90c1e3349e0913cea98c1499abddf13609f6c2009586ec40e2735cc"
    superseded = "1be69c8fe8d0d6b121ece0faa59b537358954606587a3ebb980e5cbe0c1e2d1e"  # of the same file name
    assert released in recorded
    assert superseded not in recorded


def test_wheels_of_releases_are_those_that_the_releases_name():
    for name, pythons in MATRIX.locks.items():
        companions = MATRIX.release_by_name[name].companions
        for files in pythons.values():
            for wheel in (MATRIX.wheels[file] for file in files):
                assert "triton" not in wheel.name or companions[wheel.name] == wheel.version, name


def test_no_registry_host_is_recorded():
    text = (ROOT / "matrix/wheels.yaml").read_text() + (ROOT / "matrix/locks.yaml").read_text()
    assert "://" not in text
