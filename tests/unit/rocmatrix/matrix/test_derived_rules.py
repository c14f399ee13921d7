"""Rules that follow from the releases say what the releases say, and nothing else."""

from packaging.version import Version

from rocmatrix.matrix import derived_rules
from rocmatrix.matrix.library import Libraries
from rocmatrix.matrix.statement import Selector
from tests.fixtures.cells import MATRIX

RULES = {rule.id: rule for rule in MATRIX.derived_rules}
NO_LIBRARIES = Libraries(rocblas=[], rccl=[], hipblaslt=[], attention=[], allocator=[], drivers=[])
RELEASE_RULES = derived_rules.rules(MATRIX.releases, MATRIX.architectures, NO_LIBRARIES)


def blockers(architecture, release):
    axes = {"architecture": architecture, "torch": release.torch, "rocm": release.rocm}
    return [rule.id for rule in RELEASE_RULES if rule.when.matches(**axes)]


def test_rule_blocks_an_architecture_exactly_where_a_release_left_it_out():
    for release in MATRIX.releases:
        for architecture in MATRIX.architectures:
            known = release.rocm is not None and release.architectures is not None
            never = architecture in {"gfx803", "gfx90c", "gfx940", "gfx941", "gfx1250"}
            left_out = known and architecture not in release.architectures
            expected = left_out or (never and release.rocm is not None)
            assert bool(blockers(architecture, release)) == expected, (architecture, release.name)


def test_combinations_of_a_release_are_never_called_unpaired():
    for release in MATRIX.releases:
        assert not [rule for rule in blockers(None, release) if rule.startswith("rocm-versions-of")]


def test_pair_that_was_never_built_is_blocked_with_the_pairs_that_were():
    rule = RULES["rocm-versions-of-torch-2.5.1"]
    assert rule.when.matches(architecture="gfx1100", torch="2.5.1", rocm="6.3")
    assert not rule.when.matches(architecture="gfx1100", torch="2.5.1", rocm="6.2")
    assert not rule.when.matches(architecture=None, torch="2.5.1", rocm=None)
    assert "6.1, 6.2" in rule.reason


def test_unlisted_combination_is_not_called_broken():
    assert not any("2.15" in rule for rule in RULES)


def test_derived_rules_carry_the_sources_of_what_they_follow_from():
    rule = RULES["not-compiled-rocm6.2-torch2.5.1"]
    assert rule.evidence.confidence == "derived"
    assert "astral-sh/uv#14086 (get_arch_list of 2.5.1+rocm6.2)" in rule.evidence.sources
    assert rule.expires > rule.evidence.date
    assert "gfx1030, gfx1100 only" in rule.reason


def test_library_without_kernels_keeps_its_own_name_and_confidence():
    rule = RULES["gfx906-rocblas-from-6.4"]
    assert rule.evidence.confidence == "reported"
    assert rule.when.matches(architecture="gfx906", torch="2.8.0", rocm="6.4")
    assert not rule.when.matches(architecture="gfx906", torch="2.8.0", rocm="6.3")
    caution = RULES["rccl-not-built-for-small-apus"]
    assert not caution.decides


def test_few_rules_replace_hundreds():
    combinations = len(MATRIX.releases) * len(MATRIX.architectures)
    assert len(RULES) < combinations / 10


def test_empty_release_list_gives_no_rule():
    assert derived_rules.rules([], MATRIX.architectures, NO_LIBRARIES) == ()


def test_torch_versions_from_2_0_to_2_15_are_all_there():
    minors = {Version(release.torch).release[:2] for release in MATRIX.releases}
    assert minors >= {(2, minor) for minor in range(16)}


def of(name):
    return MATRIX.release_by_name[name]


def derived(*names, architectures=("gfx1030", "gfx1100", "gfx803")):
    found = derived_rules.rules([of(name) for name in names], architectures, NO_LIBRARIES)
    return {rule.id: rule for rule in found}


def test_rules_follow_from_their_releases_in_every_part():
    first, second = of("rocm6.1-torch2.5.1"), of("rocm6.2-torch2.5.1")
    found = derived(first.name, second.name, "cpu-torch2.13.0")
    assert list(found) == [
        "gfx803-in-no-release",
        "not-compiled-rocm6.1-torch2.5.1",
        "not-compiled-rocm6.2-torch2.5.1",
        "rocm-versions-of-torch-2.5.1",
    ]
    assert {(rule.verdict, rule.evidence.confidence) for rule in found.values()} == {("broken", "derived")}
    never = found["gfx803-in-no-release"]
    assert never.when == Selector(architectures=["gfx803"], rocm=">=0")
    assert never.reason == "none of the 2 ROCm releases of torch known here holds device code for gfx803"
    assert never.evidence.sources == ["the architecture lists in matrix/releases.yaml, each with its own sources"]
    assert never.evidence.date == max(each.device_code.evidence.date for each in (first, second))
    left_out = found["not-compiled-rocm6.2-torch2.5.1"]
    assert left_out.when == Selector(architectures=["gfx803"], torch="==2.5.1", rocm="==6.2")
    held = ", ".join(second.architectures)
    assert left_out.reason == f"torch 2.5.1 for ROCm 6.2 holds device code for {held} only"
    assert left_out.evidence.sources == second.device_code.evidence.sources
    assert left_out.evidence.date == second.device_code.evidence.date
    assert left_out.expires == derived_rules.look_again(left_out.evidence.date)
    paired = found["rocm-versions-of-torch-2.5.1"]
    assert paired.when == Selector(torch="==2.5.1", rocm="!=6.1,!=6.2")
    assert paired.reason == "torch 2.5.1 was released for ROCm 6.1, 6.2 only"
    assert paired.evidence.sources == list(dict.fromkeys([*first.evidence.sources, *second.evidence.sources]))
    assert paired.evidence.date == max(first.evidence.date, second.evidence.date)


def test_torch_with_a_release_that_is_not_known_whole_has_no_rule_on_its_pairs():
    assert "rocm-versions-of-torch-2.15.0" not in derived(
        *(release.name for release in MATRIX.releases if release.torch == "2.15.0")
    )


def test_architecture_in_no_rule_is_one_that_every_release_left_out():
    assert "gfx1100-in-no-release" not in derived("rocm6.1-torch2.5.1", "rocm6.2-torch2.5.1")
    assert [rule for rule in derived("cpu-torch2.13.0") if rule.endswith("in-no-release")] == []


def test_library_entries_are_each_a_rule():
    entries = [*MATRIX.libraries.rocblas, *MATRIX.libraries.rccl]
    found = derived_rules.library_rules(MATRIX.libraries)
    assert [rule.id for rule in found] == [entry.id for entry in entries]
    for rule, entry in zip(found, entries, strict=True):
        library = "rocBLAS" if entry in MATRIX.libraries.rocblas else "RCCL"
        assert rule.reason == f"{library} has no kernels for it: {entry.note}"
        assert (rule.when, rule.evidence, rule.verdict) == (entry.when, entry.evidence, "broken")
        assert rule.expires == derived_rules.look_again(entry.evidence.date)
    everything = derived_rules.rules(MATRIX.releases, MATRIX.architectures, MATRIX.libraries)
    assert everything[-len(found) :] == found
    assert everything[: -len(found)] == RELEASE_RULES


def test_statement_is_due_for_review_after_a_year():
    assert derived_rules.look_again("2026-11-21") == "2027-11-21"
