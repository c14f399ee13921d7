"""The mutants: what is mutated, what counts as killed, and that the record is of modules that are there."""

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.mutants import forked, named, plan, report, source, trial
from benchmarks.mutants.undecorated import undecorated

MODULE = '''
from functools import cache, cached_property


class Kept:
    """SYNTHETIC."""

    @property
    def great(self) -> bool:
        return self.size > 3

    @cached_property
    def small(self) -> bool:
        return not self.great


@cache
def double(number: int) -> int:
    if number == 7:
        raise ValueError("seven is refused", "E7")
    return number * 2
'''
TESTS = """
import pytest
from program.kept import Kept, double


@pytest.mark.parametrize(("size", "great"), [(3, False), (4, True)])
def test_size(size, great):
    kept = Kept()
    kept.size = size
    assert (kept.great, kept.small) == (great, not great)


def test_double():
    assert double(3) == 6
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """One synthetic module, judged by tests that see all but its refusal's code."""
    folder = tmp_path_factory.mktemp("mutants")
    for name, text in {"program/__init__.py": "", "program/kept.py": MODULE, "tests/test_kept.py": TESTS}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\n')
    module = plan.Module(path="program/kept.py", tests=("tests/test_kept.py",))
    trial.prepare(module, folder)
    return trial.first_pass(module, folder)


def test_mutants_of_properties_and_cached_functions_are_made_and_killed(outcome):
    status = {(report.function_of(each["name"]), each["change"][-1]): each["status"] for each in outcome}
    assert status["Kept.great", "+ return self.size >= 3"] == "killed"
    assert status["Kept.great", "+ return self.size > 4"] == "killed"
    assert status["Kept.small", "+ return self.great"] == "killed"
    assert status["double", "+ return number / 2"] == "killed"


def test_mutant_that_no_test_sees_survives(outcome):
    survived = [each["change"][-1] for each in outcome if each["status"] not in trial.KILLED]
    assert "+ if number == 8:" in survived
    assert any("XXE7XX" in change for change in survived)


def test_phrase_is_no_mutant(outcome):
    assert not any("XXseven" in line or "SEVEN" in line for each in outcome for line in each["change"])


def test_test_that_fails_without_a_mutant_ends_the_trial(tmp_path):
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "kept.py").write_text("def one():\n    return 1\n")
    (tmp_path / "test_kept.py").write_text("from program.kept import one\n\n\ndef test_one():\n    assert one() == 2\n")
    (tmp_path / "pyproject.toml").write_text("")
    module = plan.Module(path="program/kept.py", tests=("test_kept.py",))
    trial.prepare(module, tmp_path)
    with pytest.raises(SystemExit, match="fail without a mutant"):
        trial.first_pass(module, tmp_path)


@pytest.mark.parametrize(("seconds", "outcome"), [(0.0, "timeout"), (1e9, "survived")])
def test_mutant_is_too_slow_by_its_own_time_and_not_by_that_of_other_programs(monkeypatch, seconds, outcome):
    monkeypatch.setattr(forked, "WALL_SECONDS", 0.01)
    monkeypatch.setattr(forked, "waited", lambda _: seconds)
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.setpgid(0, 0)
            time.sleep(0.1)
        os._exit(0)
    assert forked.ended(child) == outcome


def test_wait_for_a_core_is_read_of_a_process_and_none_of_one_that_is_gone():
    assert 0 <= forked.waited(os.getpid()) < time.monotonic()
    assert forked.waited(0) == 0.0


def test_rewriting_accepts_known_decorators_only():
    kept = "@staticmethod\ndef one() -> int:\n    return 1\n@edge\ndef two() -> int:\n    return 2\n"
    assert undecorated(kept) == kept
    assert "great = property(great)" in undecorated(MODULE)
    assert "@" not in (made := undecorated("@torch.no_grad()\ndef one() -> int:\n    return 1\n"))
    assert "one = torch.no_grad()(one)" in made
    assert "@cache" not in undecorated(MODULE)


def trial_of(*statuses, path="rocmatrix/matrix/rule.py"):
    change = ["- one", "+ two"]
    mutants = [
        {"name": f"rocmatrix.matrix.rule.x_first__mutmut_{n}", "status": status, "change": [*change, f"+ {n}"]}
        for n, status in enumerate(statuses)
    ]
    return trial.Trial(module=plan.Module(path=path, tests=("t.py",)), source="0", mutants=mutants, seconds=1.0)


def test_score_leaves_out_what_is_equal_and_counts_what_no_test_reaches(monkeypatch):
    monkeypatch.setattr(report, "equal", lambda _: {("first", "- one", "+ two", "+ 3"): "for the test"})
    entry = report.entry(trial_of("killed", "timeout", "crashed", "survived", "survived", "no tests"))
    assert (entry["mutants"], entry["killed"], entry["equal"], entry["score"]) == (6, 3, 1, 60.0)
    assert [survivor["equal"] for survivor in entry["survivors"]] == ["for the test", "", ""]
    assert not report.good({"modules": {"m": entry}, "named": []})
    assert report.good({"modules": {"m": entry | {"score": 90.0}}, "named": [{"killed": True}]})
    assert not report.good({"modules": {}, "named": [{"killed": False}]})


def test_kept_mutants_were_killed_before():
    entry = report.entry(trial_of("kept", "kept", "survived"))
    assert (entry["mutants"], entry["killed"], entry["score"]) == (3, 2, 66.7)
    entry = report.entry(trial_of("kept", "kept", "survived"), survived=[("first", ["- one", "+ two", "+ 1"])])
    assert [survivor["change"][-1] for survivor in entry["survivors"]] == ["+ 1", "+ 2"]


SOURCE = b"""
from kept import one, two
MOST = 3


class A:
    size: int = 1

    def f(self): return one()
    def g(self): return 2


def h(): return MOST
def i(): return two()
"""


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        (b"return 2", b"return 4", ["x\u01c1A\u01c1g"]),
        (b"MOST = 3", b"MOST = 4", ["x_h"]),
        (b"import one, two", b"import one, three as two", ["x_i"]),
        (b"import one, two", b"import one, two, three", []),
        (b"size: int = 1", b"size: int = 2", ["x\u01c1A\u01c1f", "x\u01c1A\u01c1g"]),
        (b"def i()", b"@cache\ndef i()", ["x_i"]),
        (b"def h(): return MOST", b'def h():\n    """Return it."""  # at most\n    return MOST', []),
    ],
)
def test_functions_that_a_version_changed_are_named_and_those_that_use_what_it_changed(old, new, names):
    now = SOURCE.replace(old, new)
    assert now != SOURCE
    assert source.changed(SOURCE, now) == names
    assert (source.hash_of(now) == source.hash_of(SOURCE)) == (not names and b"three" not in new)


def test_survivors_are_tried_again_alone_where_the_source_of_the_record_is_known(monkeypatch):
    (module, *_) = plan.modules()
    change = ["- one", "+ two"]
    survivors = [{"change": change, "equal": ""}, {"change": ["- x"], "equal": "for the test"}]
    entry = {"source": module.source, "survivors": survivors}
    monkeypatch.setattr(report, "recorded", lambda: {"modules": {module.path: entry}})
    assert report.to_try_again(module) == {"changes": [change], "functions": []}
    entry["source"] = "0" * 16
    with pytest.raises(SystemExit, match="run it whole"):
        report.to_try_again(module)


def test_score_of_another_source_is_stale():
    (first, *_) = plan.modules()
    of_now, of_before = ({"modules": {first.path: {"source": source}}} for source in (first.source, "0" * 16))
    assert f"{first.path}: changed since it was run" in report.stale(of_before)
    assert not any(line.startswith(first.path) for line in report.stale(of_now))
    assert f"{first.path}: never run" in report.stale({"modules": {}})


def test_record_of_another_python_is_not_compared(monkeypatch):
    (first, *_) = plan.modules()
    record = {"modules": {first.path: {"source": "0" * 16}}, "machine": "x86_64, Python 3.11.7"}
    monkeypatch.setattr(report, "recorded", lambda: record)
    monkeypatch.setattr(report.platform, "python_version", lambda: "3.11.15rc1")
    assert f"{first.path}: changed since it was run" in report.stale(record)
    monkeypatch.setattr(report.platform, "python_version", lambda: "3.14.0")
    (line,) = report.stale(record)
    assert "3.11" in line
    assert "3.14" in line
    with pytest.raises(SystemExit, match=r"under Python 3\.11"):
        report.to_try_again(first)


def test_modules_exist_and_are_judged_by_tests_that_exist():
    for module in plan.modules():
        assert (plan.ROOT / module.path).is_file(), module.path
        assert module.tests, module.path
        assert all((plan.ROOT / test).exists() for test in module.tests), module.path


def test_skipped_names_are_those_of_tests_that_exist():
    for module in plan.modules():
        files = [path for test in module.tests for path in [plan.ROOT / test, *(plan.ROOT / test).rglob("test_*.py")]]
        tests = {
            name for path in files if path.is_file() for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
        }
        for part in filter(None, module.skip.split(" or ")):
            assert any(part in name for name in tests), (module.path, part)


def test_unknown_module_is_refused():
    with pytest.raises(SystemExit, match=r"rocmatrix/none\.py"):
        plan.chosen(["rocmatrix/none.py"])


def test_mutants_written_by_hand_fit_their_modules():
    for mutant in named.mutants():
        code = (plan.ROOT / mutant.path).read_text()
        changed = named.mutated(mutant, code)
        compile(changed, mutant.path, "exec")
        assert changed != code
        for file, _, test in (each.partition("::") for each in mutant.tests):
            assert f"def {test.partition('[')[0]}" in (plan.ROOT / file).read_text(), (mutant.name, test)
    with pytest.raises(ValueError, match="0 times"):
        named.mutated(named.mutants()[0], "")


def test_record_holds_scores_of_known_modules_that_are_high_enough_and_reasons_for_the_rest():
    record = report.recorded()
    known = {module.path for module in plan.modules()}
    assert record["modules"]
    assert set(record["modules"]) <= known
    assert report.good(record)
    for path, entry in record["modules"].items():
        counted = entry["mutants"] - entry["equal"]
        assert entry["killed"] + len(entry["survivors"]) == entry["mutants"], path
        assert entry["score"] == round(100 * entry["killed"] / counted, 1), path
        assert entry["equal"] == sum(bool(survivor["equal"]) for survivor in entry["survivors"]), path
    assert report.PAGE.read_text() == report.page(record)
    assert {each["name"] for each in record["named"]} == {mutant.name for mutant in named.mutants()}


def test_command_lists_stale_scores():
    argv = [sys.executable, "-m", "benchmarks.mutants", "--stale"]
    done = subprocess.run(argv, cwd=Path(plan.ROOT), capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.strip()
