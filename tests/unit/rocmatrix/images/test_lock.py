"""Locks: every hash has an origin, nothing from a channel of candidates gets in, and locking twice changes nothing."""

import dataclasses
import hashlib
import os
import shutil
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.images import lock, wheel_source
from rocmatrix.images.pip_report import Resolved
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX
from tests.fixtures.index import Index, served

ROOT = Path(__file__).resolve().parents[4]
TODAY = date(2026, 11, 21)
NUMPY = Resolved(
    file="numpy-9.9.9-cp312-cp312-manylinux_2_28_x86_64.whl",
    name="numpy",
    version="9.9.9",
    url="https://files.example/numpy-9.9.9-cp312-cp312-manylinux_2_28_x86_64.whl",
    sha256="ab" * 32,
)
LOCKED = [cell for cell in MATRIX.cells if cell.unlocked_because is None]


@pytest.fixture
def checkout(tmp_path):
    """Return a copy of the shipped matrix."""
    shutil.copytree(ROOT / "matrix", tmp_path / "matrix")
    shutil.copy(ROOT / "matrix.yaml", tmp_path)
    return tmp_path


def written(folder):
    return {path.name: path.read_bytes() for path in (folder / "matrix").iterdir()}


def answering(monkeypatch, answer):
    queried = []
    monkeypatch.setattr(lock, "query_all", lambda questions: {q: queried.append(q) or answer(q) for q in questions})
    return queried


def recorded_versions(question):
    """Answer as an index does that has not changed: with what is recorded, and none of the release's own files."""
    if question.index:
        return RocmatrixError("RM104", what="torch", why=f"{question.index} cannot be reached: refused")
    files = {
        file
        for pythons in MATRIX.locks.values()
        for file in pythons.get(question.python, [])
        if MATRIX.wheels[file].index == "python"
        and f"{MATRIX.wheels[file].name}=={MATRIX.wheels[file].version}" in question.constraints
    }
    return [
        Resolved(file=f, name=w.name, version=w.version, url=f"https://files.example/{f}", sha256=w.sha256)
        for f in sorted(files)
        for w in [MATRIX.wheels[f]]
    ]


def test_locking_again_changes_nothing_when_the_index_did_not(checkout, monkeypatch):
    answering(monkeypatch, recorded_versions)
    before = written(checkout)
    result = lock.lock(MATRIX, checkout, targets=lock.all_targets(MATRIX), today=TODAY)
    assert len(result.done) == sum(map(len, MATRIX.locks.values()))
    assert written(checkout) == before


def test_recorded_versions_are_kept_unless_upgrading():
    target = next(t for t in lock.used_targets(MATRIX) if t.key == "rocm7.2-torch2.12.1" and t.python == "3.12")
    kept = lock.question(MATRIX, target, upgrade=False)
    assert any(line.startswith("numpy==") for line in kept.constraints)
    assert "setuptools<82" in kept.requirements
    assert lock.question(MATRIX, target, upgrade=True).constraints == ()


def test_failure_is_reported_by_release_and_does_not_stop_the_others(checkout, monkeypatch):
    answering(monkeypatch, recorded_versions)
    result = lock.lock(MATRIX, checkout, targets=lock.all_targets(MATRIX), today=TODAY)
    assert result.done
    line = next(line for line in result.failures.splitlines() if line.startswith("rocm7.2-torch2.13.0 "))
    assert "Python 3.10, 3.11, 3.12, 3.13, 3.14" in line
    assert "https://download.pytorch.org/whl/rocm7.2 cannot be reached" in line


def test_file_whose_recorded_hash_the_index_now_denies_is_rm103(checkout, monkeypatch):
    target = lock.cell_targets(MATRIX, "rocm7.2-torch2.12.1-gfx1100")[2]

    def changed(question):
        return [dataclasses.replace(row, sha256="cd" * 32) for row in recorded_versions(question)]

    answering(monkeypatch, changed)
    before = written(checkout)
    result = lock.lock(MATRIX, checkout, targets=[target], today=TODAY)
    assert [error.code for error in result.failed.values()] == ["RM103"]
    assert written(checkout) == before


def test_new_version_is_written_as_the_loader_reads_it(checkout, monkeypatch):
    answering(monkeypatch, lambda question: [NUMPY])
    (target,) = [t for t in lock.cell_targets(MATRIX, "rocm7.2-torch2.12.1-gfx942") if t.python == "3.12"]
    lock.lock(MATRIX, checkout, targets=[target], upgrade=True, today=TODAY)
    again = matrix_file.load(checkout)
    files = again.locks["rocm7.2-torch2.12.1"]["3.12"]
    assert files[0] == NUMPY.file
    assert any(file.startswith("torch-2.12.1") for file in files)
    assert again.wheels[NUMPY.file].sources == [wheel_source.PYTHON_SOURCE]


@pytest.mark.parametrize(
    ("file", "place", "code"),
    [
        ("torch-2.7.0+rocm6.3-cp312-cp312-linux_x86_64.whl", "https://download.pytorch.org/whl/test/rocm6.3", "RM106"),
        ("torch-2.7.0-cp312-cp312-linux_x86_64.whl", "a lock that points at download.pytorch.org/whl/nightly", "RM106"),
        ("rocm_sdk_core-7.14.0a20261101-py3-none-any.whl", "https://rocm.nightlies.amd.com/whl-multi-arch/", "RM106"),
        ("rocm_sdk_core-7.14.0a20260701-py3-none-any.whl", "https://rocm.nightlies.amd.com/whl-multi-arch/", "RM107"),
        ("torch-2.14.0.dev20260601+rocm7.2-cp312-cp312-linux_x86_64.whl", "x/whl/nightly/rocm7.2", "RM107"),
    ],
)
def test_candidates_are_refused_and_expired_nightlies_reported(file, place, code):
    with pytest.raises(RocmatrixError) as caught:
        wheel_source.refuse_unreleased(file, [place], today=TODAY)
    assert caught.value.code == code
    assert place in caught.value.where


@given(st.dates(min_value=date(2025, 1, 1), max_value=date(2026, 12, 31)), st.integers(min_value=0, max_value=400))
def test_nightly_expires_after_120_days(built, age):
    today = date.fromordinal(built.toordinal() + age)
    with pytest.raises(RocmatrixError) as caught:
        wheel_source.refuse_unreleased(
            f"torch-2.14.0.dev{built:%Y%m%d}+rocm7.2.whl", ["x/whl/nightly/rocm7.2"], today=today
        )
    assert caught.value.code == ("RM107" if age > 120 else "RM106")


def test_recorded_hash_of_a_test_channel_stops_the_lock(checkout, monkeypatch):
    answering(monkeypatch, recorded_versions)
    torch = "torch-2.12.1+rocm7.2-cp312-cp312-manylinux_2_28_x86_64.whl"
    tainted = MATRIX.wheels[torch].model_copy(update={"sources": ["download.pytorch.org/whl/test/rocm7.2"]})
    matrix = MATRIX.model_copy(update={"wheels": MATRIX.wheels | {torch: tainted}})
    result = lock.lock(matrix, checkout, targets=lock.used_targets(matrix), today=TODAY)
    assert {(t.key, t.python): e.code for t, e in result.failed.items()}["rocm7.2-torch2.12.1", "3.12"] == "RM106"


# From here on the real pip asks local indexes of STAND-IN wheels.
PYTHON_PACKAGES = (*lock.TRAINER_REQUIREMENTS, *lock.TORCH_REQUIREMENTS)
DEVICES = ("gfx1100", "gfx1151")


@pytest.fixture
def indexes(tmp_path, monkeypatch):
    """Return the folder of all indexes; the Python one is the only one pip is configured with."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    python = Index(tmp_path / "indexes/python")
    for name in PYTHON_PACKAGES:
        python.add(name, "1.0")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", python.url)
    return python.folder.parent


def matrix_at(index, name):
    """Return the shipped matrix with one release served by `index`."""
    release = MATRIX.release_by_name[name]
    series = [s.model_copy(update={"index": index}) if release in list(s.releases()) else s for s in MATRIX.series]
    return MATRIX.model_copy(update={"series": series})


def stock(index, torch, rocm, *, devices_of_torch=True):
    """Fill an index with a release whose ROCm comes as packages of its own."""
    asks = [f"Requires-Dist: rocm[libraries]=={rocm}", "Requires-Dist: numpy"]
    core = [f"Requires-Dist: rocm-sdk-core=={rocm}", "Provides-Extra: libraries"]
    core += [f"Requires-Dist: rocm-sdk-libraries=={rocm}; extra == 'libraries'"]
    for device in DEVICES:
        extra = f"device-{device}"
        core += [f"Provides-Extra: {extra}", f"Requires-Dist: rocm-sdk-{extra}=={rocm}; extra == '{extra}'"]
        index.add(f"rocm-sdk-{extra}", rocm)
        index.add(f"amd-torch-{extra}", torch)
        asks += [f"Provides-Extra: {extra}", f"Requires-Dist: rocm[{extra}]=={rocm}; extra == '{extra}'"]
        asks += [f"Requires-Dist: amd-torch-{extra}=={torch}; extra == '{extra}'"]
    index.add("rocm", rocm, *core)
    for name in ("rocm-sdk-core", "rocm-sdk-libraries"):
        index.add(name, rocm)
    return index.add("torch", torch, *asks)


def lock_cell(matrix, name, root):
    return lock.lock(matrix, root, targets=lock.cell_targets(matrix, name), today=TODAY)


@pytest.mark.parametrize("device", DEVICES)
def test_host_and_device_lock_holds_rocm_and_one_architecture(checkout, indexes, device):
    amd = Index(indexes / "amd")
    stock(amd, "2.13.0+rocm10.0.0", "10.0.0")
    matrix = matrix_at(amd.url, "rocm10.0-torch2.13.0")
    name = f"rocm10.0-torch2.13.0-{device}"
    result = lock_cell(matrix, name, checkout)
    assert not result.failed, result.failures
    cell = matrix_file.load(checkout).cell(name)
    names = {wheel.name for _, wheel in cell.wheels}
    expected = {"torch", "rocm", "rocm-sdk-core", "rocm-sdk-libraries"}
    assert expected | {f"rocm-sdk-device-{device}", f"amd-torch-device-{device}"} <= names
    assert not any("device" in package and not package.endswith(device) for package in names)
    assert cell.unlocked_because is None
    assert {wheel.index for _, wheel in cell.wheels if wheel.name.startswith("rocm")} == {"pytorch"}
    other = next(d for d in DEVICES if d != device)
    assert matrix_file.load(checkout).cell(f"rocm10.0-torch2.13.0-{other}").unlocked_because


def test_packages_of_other_architectures_that_torch_asks_for_are_left_out(checkout, indexes):
    pytorch = Index(indexes / "pytorch")
    for device in DEVICES:
        pytorch.add(f"rocm-sdk-device-{device}", "7.14.0")
    asks = [f"Requires-Dist: rocm-sdk-device-{device}" for device in DEVICES]
    pytorch.add("torch", "2.14.1+rocm7.14", *asks)
    matrix = matrix_at(pytorch.url, "rocm7.14-torch2.14.1")
    result = lock_cell(matrix, "rocm7.14-torch2.14.1-gfx1151", checkout)
    (wheels,) = result.done.values()
    assert {wheel.name for wheel in wheels.values() if "device" in wheel.name} == {"rocm-sdk-device-gfx1151"}


@pytest.mark.parametrize("hashes", [True, False])
def test_hash_is_the_indexs_or_computed_once_and_names_which(checkout, indexes, hashes):
    pytorch = Index(indexes / "pytorch", hashes=hashes)
    file = pytorch.add("torch", "2.13.0+rocm7.2")
    with served(indexes) as address:
        matrix = matrix_at(f"{address}/pytorch", "rocm7.2-torch2.13.0")
        target = next(t for t in lock.all_targets(matrix) if t.key == "rocm7.2-torch2.13.0" and t.python == "3.12")
        result = lock.lock(matrix, checkout, targets=[target], today=TODAY)
    assert not result.failed, result.failures
    wheel = matrix_file.load(checkout).wheels[file.name]
    assert wheel.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    place = f"{address.removeprefix('http://')}/pytorch"
    if hashes:
        assert (wheel.sources, wheel.confidence) == ([f"{place}, as the index states it"], "verified in source")
    else:
        assert wheel.sources == [f"{place}/torch/{file.name} itself, hash computed 2026-11-21"]
        assert wheel.confidence == "measured here"


def test_file_whose_hash_pip_does_not_know_is_read_once(tmp_path):
    file = Index(tmp_path / "i", hashes=False).add("torch", "2.13.0+rocm7.2")
    row = Resolved(file=file.name, name="torch", version="2.13.0+rocm7.2", url=file.as_uri(), sha256=None)
    wheel = wheel_source.wheel(row, index=(tmp_path / "i").as_uri(), today=TODAY)
    assert wheel.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert wheel.confidence == "measured here"


def test_rocm_package_from_elsewhere_is_rm108():
    row = dataclasses.replace(NUMPY, name="rocm-sdk-core", url="https://elsewhere.example/rocm_sdk_core-99.whl")
    with pytest.raises(RocmatrixError, match="RM108"):
        wheel_source.wheel(row, index="https://repo.amd.com/rocm/whl-multi-arch/", today=TODAY)


def test_answer_of_a_test_channel_is_refused(checkout, indexes):
    index = Index(indexes / "whl/test/rocm7.2")
    index.add("torch", "2.13.0+rocm7.2")
    matrix = matrix_at(index.url, "rocm7.2-torch2.13.0")
    target = next(t for t in lock.all_targets(matrix) if t.key == "rocm7.2-torch2.13.0")
    result = lock.lock(matrix, checkout, targets=[target], today=TODAY)
    assert [error.code for error in result.failed.values()] == ["RM106"]


def test_newer_version_changes_a_lock_only_where_upgrading(checkout, indexes, monkeypatch):
    target = next(t for t in lock.used_targets(MATRIX) if t.key == "rocm6.3-torch2.7.1" and t.python == "3.12")
    assert not lock.lock(MATRIX, checkout, targets=[target], upgrade=True, today=TODAY).failed
    first = written(checkout)
    newer = Index(indexes / "newer")
    newer.add("numpy", "2.0")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", newer.url)
    again = matrix_file.load(checkout)
    assert not lock.lock(again, checkout, targets=[target], today=TODAY).failed
    assert written(checkout) == first
    lock.lock(again, checkout, targets=[target], upgrade=True, today=TODAY)
    assert "numpy-2.0-py3-none-any.whl" in matrix_file.load(checkout).locks[target.key]["3.12"]


def test_locked_cells_have_a_complete_lock():
    assert len(LOCKED) >= 12
    for cell in LOCKED:
        names = {wheel.name.lower().replace("_", "-") for _, wheel in cell.wheels}
        missing = {*lock.TRAINER_REQUIREMENTS, *lock.TORCH_REQUIREMENTS, "torch"} - names
        assert not missing, (cell.name, missing)
        assert (cell.release.rocm is None) != any("triton" in name for name in names), cell.name


def test_wheels_of_a_cell_fit_its_python():
    for cell in MATRIX.cells:
        tag = "cp" + cell.python.replace(".", "")
        for file, _ in cell.wheels:
            assert f"-{tag}-" in file or "-abi3-" in file or "-py3-none-" in file or "-py2.py3-" in file, file


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


def test_locks_record_no_registry_host():
    text = (ROOT / "matrix/wheels.yaml").read_text() + (ROOT / "matrix/locks.yaml").read_text()
    assert "://" not in text
