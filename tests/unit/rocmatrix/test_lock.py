"""What pip is asked for is the image's Python and platform; what it answers is read exactly."""

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


def test_every_cell_has_a_complete_lock():
    for cell in MATRIX.cells:
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
    (tmp_path / "matrix.yaml").write_text((ROOT / "matrix.yaml").read_text())
    assert set(lock.lock(MATRIX, tmp_path)) == {release.name for release in MATRIX.releases}
    again = matrix_file.load(tmp_path)
    for cell in again.cells:
        files = [file for file, _ in cell.wheels]
        assert any(file.startswith("torch-") for file in files)
        assert REPORT["install"][0]["download_info"]["url"].rsplit("/", 1)[1] in files


def test_no_registry_host_is_recorded():
    text = (ROOT / "matrix/wheels.yaml").read_text() + (ROOT / "matrix/locks.yaml").read_text()
    assert "://" not in text
