"""Rules that follow from the releases say what the releases say, and nothing else."""

from pathlib import Path

from packaging.version import Version

from rocmatrix.matrix import derived_rules as derive
from rocmatrix.matrix.library import Libraries
from rocmatrix.matrix.loading import load as matrix_file

MATRIX = matrix_file.load(Path(__file__).resolve().parents[4])
RULES = {rule.id: rule for rule in MATRIX.derived_rules}
NO_LIBRARIES = Libraries(rocblas=[], rccl=[], hipblaslt=[], attention=[], allocator=[], drivers=[])
RELEASE_RULES = derive.rules(MATRIX.releases, MATRIX.architectures, NO_LIBRARIES)


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


def test_no_combination_of_a_release_is_called_unpaired():
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
    assert "pytorch/pytorch@1fca82d4:.ci/docker/manywheel/build.sh" in rule.evidence.sources
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


def test_no_release_at_all_gives_no_rule():
    assert derive.rules([], MATRIX.architectures, NO_LIBRARIES) == ()


def test_every_torch_from_2_0_to_2_15_is_there():
    minors = {Version(release.torch).release[:2] for release in MATRIX.releases}
    assert minors >= {(2, minor) for minor in range(16)}
