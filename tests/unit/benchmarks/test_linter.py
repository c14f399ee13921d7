"""How files of others are judged."""

import pytest

from benchmarks import linter
from rocmatrix.doctor.environment.lint import LintFinding


def finding(rule, line, severity="warning"):
    return LintFinding(
        rule=rule, subject="a", where=f"/a/b:{line}", what="", kind="conflict", severity=severity, truth="",
        instead="", source="",
    )  # fmt: skip


WRONG = linter.Case(file="a", source="b", lines=(3, 4), rules=("two-filters",))
SOUND = linter.Case(file="c", source="d")


@pytest.mark.parametrize(
    ("case", "findings", "judged"),
    [
        (WRONG, (finding("two-filters", 4, "note"),), "useful"),
        (WRONG, (finding("two-filters", 5), finding("other", 3)), "missed"),
        (SOUND, (finding("other", 1, "note"),), "silent"),
        (SOUND, (finding("other", 1), finding("other", 2, "error")), "error"),
        (SOUND, (), "silent"),
    ],
)
def test_finding_counts_by_its_rule_and_line(case, findings, judged):
    assert case.judged(findings) == judged


def test_kept_sets_have_mistakes_and_sound_files_with_a_source_each():
    for name, least in (("first", 70), ("second", 25), ("third", 65), ("fourth", 30), ("fifth", 100), ("sixth", 30)):
        rows = linter.cases(name)
        assert len(rows) >= least
        assert len({row.file for row in rows}) == len(rows)
        assert all(row.source and (row.sound or row.rules) for row in rows)
        assert 0.3 < sum(row.sound for row in rows) / len(rows) < 0.95


def test_file_that_is_fetched_anew_is_judged_as_it_is_now(tmp_path):
    (tmp_path / "run.sh").write_text("ls\ndocker run --ipc=host --device=/dev/dri rocm/app:1\n")
    case = linter.Case(file="run.sh", source="b", lines=(2,), rules=("kfd-not-given",))
    absent = linter.Case(file="other.sh", source="b", lines=(2,), rules=("kfd-not-given",))
    rows = {one: linter.now(one, tmp_path) for one in (case, absent)}
    assert list(rows.values()) == ["useful", "absent"]
    assert linter.summary(rows) == {
        "files": 2, "with_a_mistake": 2, "useful_at_the_line": 1, "sound": 0, "sound_with_error_or_warning": 0,
        "refused": 0,
    }  # fmt: skip
