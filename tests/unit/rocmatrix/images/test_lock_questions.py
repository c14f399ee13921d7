"""What pip is asked for each lock, which locks there are, and how what came of them is written. No pip runs here."""

from datetime import date
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

from rocmatrix.images import lock
from rocmatrix.images.pip_report import Resolved
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

ROOT = Path(__file__).resolve().parents[4]
BUNDLED = MATRIX.release_by_name["rocm7.2-torch2.12.1"]
BY_DEVICE = MATRIX.release_by_name["rocm10.0-torch2.13.0"]
UNRECORDED = MATRIX.release_by_name["rocm7.2-torch2.13.0"]
TODAY = date(2026, 11, 21)


def target(release, python="3.12", architecture=None):
    return lock.Target(release=release, python=python, architecture=architecture)


def test_target_is_one_release_one_python_and_one_architecture_where_each_has_its_own():
    assert target(BUNDLED).key == "rocm7.2-torch2.12.1"
    assert target(BY_DEVICE, architecture="gfx1100").key == "rocm10.0-torch2.13.0-gfx1100"
    assert target(BUNDLED).summary == "rocm7.2-torch2.12.1, Python 3.12"
    assert target(BY_DEVICE, architecture="gfx1100").summary.endswith("tried on synthetic indexes only")
    assert hash(target(BUNDLED)) == hash(target(BUNDLED)) != hash(target(BUNDLED, "3.13"))


def test_packages_of_a_recorded_torch_are_requested_at_the_recorded_versions():
    files = MATRIX.locks["rocm7.2-torch2.12.1"]["3.12"]
    wheels = [MATRIX.wheels[file] for file in files]
    question = lock.question(MATRIX, target(BUNDLED), upgrade=False)
    names = dict.fromkeys((*lock.TRAINER_REQUIREMENTS, *lock.TORCH_REQUIREMENTS))
    assert question.requirements == tuple(name + BUNDLED.pins.get(name, "") for name in names)
    assert question.constraints == tuple(f"{w.name}=={w.version}" for w in wheels if w.index == "python")
    assert (question.python, question.index) == ("3.12", None)
    assert 0 < len(question.constraints) < len(wheels)


def test_unrecorded_torch_is_requested_at_the_releases_own_index():
    question = lock.question(MATRIX, target(UNRECORDED, "3.13"), upgrade=False)
    pins = tuple(name + bounds for name, bounds in UNRECORDED.pins.items())
    assert question.requirements == (UNRECORDED.requirement(None), *lock.TRAINER_REQUIREMENTS, *pins)
    assert (question.python, question.index) == ("3.13", UNRECORDED.index)


@pytest.mark.parametrize("architecture", ["gfx1100", "gfx1151"])
def test_rocm_packages_are_requested_with_torch_even_where_that_is_recorded(architecture):
    torch = next(file for file, wheel in MATRIX.wheels.items() if wheel.name == "torch")
    one = target(BY_DEVICE, architecture=architecture)
    matrix = MATRIX.model_copy(update={"locks": {one.key: {"3.12": [torch]}}})
    question = lock.question(matrix, one, upgrade=False)
    assert question.requirements[0] == BY_DEVICE.requirement(architecture)
    assert question.index == BY_DEVICE.index


def test_targets_in_use_are_those_of_cells_with_every_recorded_python_in_order():
    found = lock.used_targets(MATRIX)
    assert len(found) == len(set(found))
    for cell in MATRIX.cells:
        mine = [t for t in found if t.key == cell.lock_name]
        pythons = [t.python for t in mine]
        assert set(pythons) >= {cell.python, *MATRIX.locks.get(cell.lock_name, {})}
        assert pythons == sorted(pythons, key=Version)
        assert {t.architecture for t in mine} == {cell.architecture if cell.release.by_architecture else None}
        assert {t.release.name for t in mine} == {cell.release.name}


def test_targets_are_those_in_use_and_every_bundled_release_with_every_python():
    found = lock.all_targets(MATRIX)
    used = lock.used_targets(MATRIX)
    assert found[: len(used)] == used
    assert len(found) == len(set(found))
    for release in MATRIX.releases:
        mine = [t for t in found if t.release.name == release.name]
        if release.by_architecture:
            assert all(t in used for t in mine)
        else:
            assert {t.python for t in mine} == {*release.pythons, *MATRIX.locks.get(release.name, {})}
    later = [t.python for t in found[len(used) :] if t.release.name == UNRECORDED.name]
    assert later == sorted(later, key=Version)
    assert len(later) > 2


def test_targets_of_a_cell_are_its_releases_pythons():
    assert [t.python for t in lock.cell_targets(MATRIX, "rocm7.2-torch2.12.1-gfx1100")] == sorted(
        {"3.12", *MATRIX.locks["rocm7.2-torch2.12.1"]}, key=Version
    )
    with pytest.raises(RocmatrixError, match="RM010"):
        lock.cell_targets(MATRIX, "rocm7.2-torch2.12.1-gfx110")


def test_failures_of_one_reason_share_a_line():
    refused, absent = RocmatrixError("RM104", what="torch", why="one\ntwo"), RocmatrixError("RM103", what="numpy")
    failed = {target(BUNDLED, "3.12"): refused, target(BUNDLED, "3.13"): refused, target(UNRECORDED): absent}
    assert lock.Locked(failed=failed).failures.splitlines() == [
        "rocm7.2-torch2.12.1 (Python 3.12, 3.13): RM104 one; two",
        f"rocm7.2-torch2.13.0 (Python 3.12): RM103 {absent.why or f'{absent.title}: numpy'}",
    ]


def row(name, *, sha256="ab" * 32, version="9.9.9"):
    file = f"{name}-{version}-py3-none-any.whl"
    return Resolved(file=file, name=name, version=version, url=f"https://files.example/{file}", sha256=sha256)


def wheels(release, *rows, matrix=MATRIX, python="3.12", architecture=None):
    one = target(release, python, architecture)
    question = lock.question(matrix, one, upgrade=True)
    return lock._wheels(matrix, one, question, list(rows), today=TODAY)


def test_lock_keeps_the_recorded_torch_and_takes_the_rest_from_the_answer():
    found = wheels(BUNDLED, row("numpy"), row("tqdm"))
    kept = {file for file in MATRIX.locks["rocm7.2-torch2.12.1"]["3.12"] if MATRIX.wheels[file].index == "pytorch"}
    assert kept
    assert set(found) == kept | {row("numpy").file, row("tqdm").file}
    assert {found[file] == MATRIX.wheels[file] for file in kept} == {True}
    assert (found[row("numpy").file].index, found[row("numpy").file].sha256) == ("python", "ab" * 32)


def test_answer_from_the_releases_own_index_keeps_nothing_recorded(monkeypatch):
    seen = []
    some = next(w for w in MATRIX.wheels.values() if w.index == "python")

    def made(row, *, index, today):
        seen.append((index, today))
        return some.model_copy(update={"name": row.name})

    monkeypatch.setattr(lock.wheel_source, "wheel", made)
    names = ("rocm-sdk-device-gfx1100", "rocm-sdk-device-gfx1151", "numpy")
    rows = [row(name, version="10.0.0") for name in names]
    torch = next(file for file, wheel in MATRIX.wheels.items() if wheel.name == "torch")
    one = target(BY_DEVICE, architecture="gfx1100")
    matrix = MATRIX.model_copy(update={"locks": {one.key: {"3.12": [torch]}}})
    question = lock.question(matrix, one, upgrade=True)
    found = lock._wheels(matrix, one, question, rows, today=TODAY)
    assert {wheel.name for wheel in found.values()} == {"rocm-sdk-device-gfx1100", "numpy"}
    assert set(seen) == {(question.index, TODAY)}


def test_error_of_a_query_is_raised():
    error = RocmatrixError("RM104", what="torch")
    one = target(BUNDLED)
    with pytest.raises(RocmatrixError) as caught:
        lock._wheels(MATRIX, one, lock.question(MATRIX, one, upgrade=True), error, today=TODAY)
    assert caught.value is error


def test_file_of_other_bytes_than_recorded_names_both_hashes_and_where_each_was_read():
    file = next(f for f, w in MATRIX.wheels.items() if w.index == "python")
    recorded = MATRIX.wheels[file]
    other = recorded.model_copy(update={"sha256": "cd" * 32, "sources": ["here", "there"]})
    with pytest.raises(RocmatrixError, match="RM103") as caught:
        lock._known(MATRIX, file, other)
    assert (caught.value.what, caught.value.where) == (file, "here, there")
    assert caught.value.why == f"recorded {recorded.sha256} ({', '.join(recorded.sources)})\nnow      {'cd' * 32}"
    same = recorded.model_copy(update={"sources": ["elsewhere"]})
    assert lock._known(MATRIX, file, same) == recorded
    assert lock._known(MATRIX, "new.whl", same) == same


def written(tmp_path, done, *, locks, wheels):
    """Write a small record and read it back as plain data."""
    matrix = MATRIX.model_copy(update={"locks": locks, "wheels": wheels})
    lock._write(matrix, lock.Locked(done=done), tmp_path)
    read = {name: (tmp_path / "matrix" / f"{name}.yaml").read_text() for name in ("wheels", "locks")}
    assert all(text.startswith("# Written by `./invokew lock`. ") for text in read.values())
    return yaml.safe_load(read["wheels"]), yaml.safe_load(read["locks"])


def test_written_lock_is_ordered_and_holds_what_a_lock_or_a_release_needs(tmp_path):
    some = next(w for w in MATRIX.wheels.values() if w.index == "python")

    def make(index, digit, source="s"):
        return some.model_copy(update={"index": index, "sha256": digit * 64, "sources": [source]})

    old = {"old.whl": make("python", "1"), "rare.whl": make("pytorch", "2"), "kept.whl": make("python", "3")}
    new = {"b.whl": make("python", "4"), "A.whl": make("python", "5"), "c.whl": make("python", "6", source="r")}
    locks = {
        "rocm7.2-torch2.12.1": {"3.12": ["old.whl"], "3.9": ["kept.whl"]},
        "cpu-torch2.13.0": {"3.12": ["kept.whl"]},
    }
    groups, found = written(tmp_path, {target(BUNDLED): new}, locks=locks, wheels=old)
    assert found["rocm7.2-torch2.12.1"] == {"3.9": ["kept.whl"], "3.12": ["A.whl", "b.whl", "c.whl"]}
    assert list(found["rocm7.2-torch2.12.1"]) == ["3.9", "3.12"]
    order = [release.name for release in MATRIX.releases]
    assert list(found) == sorted(found, key=order.index)
    assert [list(group["sha256"]) for group in groups] == [["c.whl"], ["A.whl", "b.whl", "kept.whl"], ["rare.whl"]]
    assert [(group["index"], group["sources"]) for group in groups] == [
        ("python", ["r"]),
        ("python", ["s"]),
        ("pytorch", ["s"]),
    ]
    assert groups[0]["confidence"] == some.confidence
    assert groups[0]["sha256"]["c.whl"] == "6" * 64
    assert list(groups[0]) == ["index", "sources", "confidence", "sha256"]


def test_locking_queries_each_target_once_and_writes_the_answer(tmp_path, monkeypatch):
    questions = []
    monkeypatch.setattr(lock, "query_all", lambda qs: {q: questions.append(q) or [row("numpy")] for q in qs})
    (tmp_path / "matrix").mkdir()
    result = lock.lock(MATRIX, tmp_path, targets=[target(BUNDLED)])
    assert [q.python for q in questions] == ["3.12"]
    assert questions[0].constraints
    assert list(result.done) == [target(BUNDLED)]
    assert result.failed == {}
    assert row("numpy").file in (tmp_path / "matrix" / "locks.yaml").read_text()
    questions.clear()
    lock.lock(MATRIX, tmp_path, targets=[], upgrade=True)
    assert questions == []
    lock.lock(MATRIX, tmp_path, targets=[target(BUNDLED)], upgrade=True)
    assert questions[0].constraints == ()
    questions.clear()
    lock.lock(MATRIX, tmp_path)
    assert set(questions) == {lock.question(MATRIX, t, upgrade=False) for t in lock.used_targets(MATRIX)}
    assert [path.name for path in tmp_path.iterdir()] == ["matrix"]


@pytest.mark.parametrize("given", [TODAY, None])
def test_records_are_of_the_day_given_else_of_this_one(tmp_path, monkeypatch, given):
    seen = []
    monkeypatch.setattr(lock, "query_all", lambda questions: {key: [] for key in questions})
    monkeypatch.setattr(lock, "_wheels", lambda *_, today: seen.append(today) or {})
    (tmp_path / "matrix").mkdir()
    lock.lock(MATRIX, tmp_path, targets=[target(BUNDLED)], today=given)
    assert seen == [given or date.today()]


def test_python_that_a_lock_alone_names_is_a_target_in_its_order():
    assert UNRECORDED not in [t.release for t in lock.used_targets(MATRIX)]
    matrix = MATRIX.model_copy(update={"locks": {UNRECORDED.name: {"3.9": [], "3.100": []}}})
    found = [t.python for t in lock.all_targets(matrix) if t.release.name == UNRECORDED.name]
    assert (found[0], found[-1]) == ("3.9", "3.100")


def test_recorded_wheels_without_torch_are_kept_where_the_index_is_queried():
    numpy = next(file for file, wheel in MATRIX.wheels.items() if wheel.name == "numpy")
    matrix = MATRIX.model_copy(update={"locks": {UNRECORDED.name: {"3.12": [numpy]}}})
    question = lock.question(matrix, target(UNRECORDED), upgrade=False)
    assert question.constraints == (f"numpy=={MATRIX.wheels[numpy].version}",)
    assert question.index == UNRECORDED.index


def test_recorded_nightly_is_refused_by_the_day_of_the_lock():
    nightly, some = "torch-2.14.0.dev20260601.whl", next(w for w in MATRIX.wheels.values() if w.name == "torch")
    wheels = {nightly: some.model_copy(update={"sources": ["x/whl/nightly/rocm7.2"]})}
    matrix = MATRIX.model_copy(update={"locks": {BUNDLED.name: {"3.12": [nightly]}}, "wheels": wheels})
    one = target(BUNDLED)
    with pytest.raises(RocmatrixError, match="RM107"):
        lock._wheels(matrix, one, lock.question(matrix, one, upgrade=True), [], today=TODAY)


def test_yaml_is_written_in_the_order_given_and_wrapped_at_110_signs(tmp_path):
    data = {"b": "x " * 200, "a": 1}
    lock._write_yaml(tmp_path / "new" / "a.yaml", "What.", data)
    head, text = (tmp_path / "new" / "a.yaml").read_text().split("\n", 1)
    assert head == "# Written by `./invokew lock`. What."
    assert text == yaml.safe_dump(data, sort_keys=False, width=110)
    assert text.splitlines()[-1] == "a: 1"
