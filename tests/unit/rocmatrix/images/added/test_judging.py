"""Companion packages are judged by the matrix's rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.images.added import judging
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.companions import BY_NAME, CELL, MATRIX, NAMES, axes, prepare


@pytest.mark.parametrize("package", ["flash-attn", "aiter", "deepspeed", "transformer-engine"])
def test_package_without_wheels_for_rocm_is_refused_with_the_way_to_build_it(package):
    """Before pip is asked: the index's transformer-engine is NVIDIA's, and would be installed."""
    with pytest.raises(RocmatrixError) as refused:
        judging.choose(MATRIX, MATRIX.cell("rocm7.2-torch2.12.1-gfx942"), [package])
    assert refused.value.code == "RM222"
    assert "hipcc" in refused.value.next
    assert BY_NAME[package].verdict(**axes(MATRIX.cell("rocm7.2-torch2.12.1-gfx942"))) in refused.value.what


@given(st.sampled_from(MATRIX.cells), st.lists(st.sampled_from(NAMES), unique=True))
def test_choice_holds_nothing_broken_or_is_refused_with_the_rule(cell, names):
    try:
        chosen = judging.choose(MATRIX, cell, names)
    except RocmatrixError as refusal:
        if refusal.code == "RM222":
            package = BY_NAME[refusal.what.split()[0]]
            assert package.package in names
            assert refusal.next == package.no_wheel
            return
        assert refusal.code == "RM013"
        rule = next(r for c in MATRIX.companions for r in c.rules if f"rule {r.id} " in refusal.where)
        assert rule.verdict == "broken"
        assert rule.when.matches(**axes(cell))
        assert rule.evidence.sources[0] in refusal.why
    else:
        assert [companion.package for companion in chosen] == names
        assert all(companion.verdict(**axes(cell)) != "broken" for companion in chosen)


@given(st.sampled_from(MATRIX.cells), st.sampled_from(NAMES))
def test_refusal_names_only_cells_where_the_package_is_not_broken(cell, name):
    try:
        judging.choose(MATRIX, cell, [name])
    except RocmatrixError as refusal:
        named = [other for other in MATRIX.cells if f"--cell {other.name}" in refusal.next]
        assert all(BY_NAME[name].verdict(**axes(other)) != "broken" for other in named)


def test_unknown_companion_is_rm010_with_the_nearest_names():
    with pytest.raises(RocmatrixError, match=r"RM010[\s\S]*transformers"):
        judging.choose(MATRIX, CELL, ["trnsformers"])


def test_package_without_wheels_is_rm105(python_index, tmp_path):
    with pytest.raises(RocmatrixError, match="RM105"):
        prepare(["accelerate"], tmp_path)
