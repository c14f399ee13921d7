"""Programs of the trainer as values: every difference is a field, and no other module compares their names."""

import ast
import json
from collections.abc import Iterator

import pytest

from rocmatrix.evidence import from_events
from rocmatrix.evidence.record import Kind
from rocmatrix.jobs.programs import (
    PROGRAMS,
    SMOKE,
    TRAIN,
    commit,
    flags,
    listed,
    probes_by_cards,
    provenance,
    settings_status,
)
from rocmatrix.runtime.paths import ROOT, TRAINER_OPTIONS
from tests.fixtures.cells import MATRIX

# A record's kind and a stage of a night have names of their own, some of which are those of programs.
OTHER_VOCABULARIES = {"kind", "stage"}


def words(node: ast.expr) -> Iterator[object]:
    """Yield what is compared itself: a constant, or those of a written tuple, list or set; not a call's arguments."""
    for part in getattr(node, "elts", [node]):
        if isinstance(part, ast.Constant):
            yield part.value


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def comparisons_by_name(text: str) -> list[int]:
    """Lines that compare something with a program or its name: by `==`, `is`, `in` or `match`."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if {name_of(side) for side in sides} & OTHER_VOCABULARIES:
                continue
            named = any(word in PROGRAMS for side in sides for word in words(side) if isinstance(word, str))
            one = not any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops)  # FEATURES may be another's list
            through_value = one and any(name_of(side) in {name.upper() for name in PROGRAMS} for side in sides)
            found += [node.lineno] if named or through_value else []
        if isinstance(node, ast.MatchValue) and any(word in PROGRAMS for word in words(node.value)):
            found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    "line",
    [
        'if job_request.program == "train": pass',
        'if job_request.program.name in ("smoke", "bench"): pass',
        'x = "features" != program',
        "if job_request.program is TRAIN: pass",
        'match program:\n    case "bench":\n        pass',
    ],
)
def test_name_check_with_a_comparison_finds_it(line):
    assert comparisons_by_name(line)


def test_package_outside_programs_compares_no_program_name():
    sources = [path for path in (ROOT / "rocmatrix").rglob("*.py") if path.name != "programs.py"]
    assert len(sources) > 100
    found = {
        f"{path.relative_to(ROOT)}:{line}" for path in sources for line in comparisons_by_name(path.read_text("utf-8"))
    }
    assert not found


def test_recorded_programs_each_have_a_maker_of_records():
    recorded = {program.name for program in PROGRAMS.values() if program.recorded}
    assert set(from_events.OF_PROGRAM) == recorded
    assert recorded < set(Kind.__args__)


def test_options_named_by_a_program_exist_in_the_trainer():
    known = {(option["command"], option["name"]) for option in json.loads(TRAINER_OPTIONS.read_text("utf-8"))}
    named = {(p.name, option) for p in PROGRAMS.values() for option in (p.output_option, p.device_option) if option}
    assert named == {("train", "output"), ("features", "out"), ("bench", "device")}
    assert named <= known


def test_options_become_flags():
    options = {"batch_size": "8", "probe": ["a", "b"], "dry_run": True, "run": "", "seed": None, "off": False}
    assert flags(options) == ["--batch-size=8", "--probe=a", "--probe=b", "--dry-run"]


@pytest.mark.parametrize(("name", "expected"), [("cpu-torch2.13.0", "any"), ("rocm6.3-torch2.7.1-gfx906", "rocm")])
def test_rocm_cell_must_find_rocm(name, expected):
    assert provenance(SMOKE, cell=MATRIX.cell(name), image=None) == [f"--expect={expected}"]


@pytest.mark.parametrize(("option", "names"), [(["a,b", " c "], ["a", "b", "c"]), ("a,", ["a"]), (None, []), ((), [])])
def test_names_of_a_repeated_option_may_hold_commas(option, names):
    assert listed(option) == names


def test_probes_of_pairs_need_two_cards():
    fit, left_out = probes_by_cards(1)
    assert "blas" in fit and "p2p" in left_out
    assert probes_by_cards(2)[1] == ()


def test_commit_is_none_where_git_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit() is None


def test_settings_are_read_by_the_trainer_itself_without_torch(capfd):
    """What it refuses, it reports as it would at the start of a run; `--json` lets its event through."""
    assert settings_status(TRAIN, {"epochs": "-1"}, as_json=True) == 2
    captured = capfd.readouterr()
    assert "RM500" in captured.err and json.loads(captured.out)["code"] == "RM500"
    assert (settings_status(TRAIN, {"epochs": "3", "set": ["train.seed=1"]}), *capfd.readouterr()) == (0, "", "")


def test_reader_of_settings_that_fails_refuses_nothing_and_prints_nothing(monkeypatch, capfd):
    monkeypatch.setattr("rocmatrix.jobs.programs._TRAINER", "raise SystemExit('no module of that name')")
    assert (settings_status(TRAIN, {"epochs": "-1"}), *capfd.readouterr()) == (0, "", "")


def test_settings_of_which_none_was_typed_start_no_process(monkeypatch):
    monkeypatch.setattr("subprocess.run", None)
    assert (settings_status(TRAIN, {}), settings_status(SMOKE, {"probe": ["blas"]})) == (0, 0)
