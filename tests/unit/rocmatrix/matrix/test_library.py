"""What the libraries bring to a combination, and what an override does on a card."""

from pathlib import Path

import pytest

from rocmatrix.matrix import gfx
from rocmatrix.matrix.loading import load as matrix_file

MATRIX = matrix_file.load(Path(__file__).resolve().parents[4])


def of(architecture, torch, rocm):
    return MATRIX.libraries.of(architecture=architecture, torch=torch, rocm=rocm)


def test_combination_gets_one_answer_from_each_library_that_has_one():
    for release in MATRIX.releases:
        for name in ("hipblaslt", "attention", "allocator"):
            found = of("gfx1100", release.torch, release.rocm)[name]
            assert len(found) <= 1, (name, release.name)


@pytest.mark.parametrize(
    ("torch", "rocm", "accepted", "preferred"),
    [
        ("2.6.0", "6.2.4", False, False),
        ("2.9.1", "6.3", True, False),
        ("2.9.1", "6.4", True, False),
        ("2.14.1", "7.2", True, False),
        ("2.13.0", "10.0", True, True),  # AMD's own branch prefers it
    ],
)
def test_hipblaslt_on_gfx1100_by_version(torch, rocm, accepted, preferred):
    (statement,) = of("gfx1100", torch, rocm)["hipblaslt"]
    assert ("gfx1100" in statement.accepted, "gfx1100" in statement.preferred) == (accepted, preferred)
    assert set(statement.preferred) <= set(statement.accepted)


def test_library_without_a_source_has_no_statement():
    assert of("gfx1100", "2.7.1", "6.3")["hipblaslt"] == []


@pytest.mark.parametrize(
    ("torch", "rocm", "first", "expandable"),
    [
        ("2.4.1", "6.0", "PYTORCH_HIP_ALLOC_CONF", False),
        ("2.6.0", "6.2.4", "PYTORCH_HIP_ALLOC_CONF", False),
        ("2.9.1", "6.4", "PYTORCH_CUDA_ALLOC_CONF", False),
        ("2.11.0", "7.2", "PYTORCH_ALLOC_CONF", False),
        ("2.12.1", "7.2", "PYTORCH_ALLOC_CONF", True),
    ],
)
def test_allocator_variable_follows_the_torch_version(torch, rocm, first, expandable):
    (statement,) = of("gfx1100", torch, rocm)["allocator"]
    assert statement.variables[0] == first
    assert statement.expandable_segments is expandable


def test_attention_needs_the_flag_on_radeon():
    (statement,) = of("gfx1100", "2.9.1", "6.4")["attention"]
    assert "gfx1100" in statement.experimental
    assert "gfx1030" not in [*statement.supported, *statement.experimental]


def test_drivers_have_a_window_by_rocm_version():
    assert len(of("gfx1100", "2.5.1", "6.2")["drivers"]) == 1
    assert any("6.18.4" in statement.kernel for statement in of("gfx1151", "2.12.1", "7.2")["drivers"])


@pytest.mark.parametrize(
    ("name", "torch", "rocm", "value"),
    [
        ("gfx1031", "2.12.1", "7.2", "10.3.0"),
        ("gfx1031", "2.13.0", "10.0", None),
        ("gfx1101", "2.5.1", "6.2", "11.0.0"),
        ("gfx1101", "2.7.1", "6.3", None),
        ("gfx1102", "2.2.0", "5.7", "11.0.0"),
        ("gfx1102", "2.6.0", "6.1", None),  # reported to fail from ROCm 6.0 on
        ("gfx90c", "2.7.1", "6.3", "9.0.0"),
        ("gfx90c", "2.8.0", "6.4", None),
        ("gfx1103", "2.12.1", "7.2", None),  # reported to hang
        ("gfx906", "2.7.1", "6.3", None),
        ("gfx1100", "2.5.1", "6.2", None),
    ],
)
def test_override_is_advised_only_where_it_helps(name, torch, rocm, value):
    override = MATRIX.architectures[name].override(torch=torch, rocm=rocm)
    assert (override.value if override else None) == value


def test_override_stands_in_for_an_architecture_that_the_releases_hold():
    listed = {name for release in MATRIX.releases for name in release.architectures or ()}
    for entry in MATRIX.architectures.values():
        for override in entry.overrides:
            assert gfx.from_isa_version(override.value) == override.stands_in
            if override.effect == "helps":
                assert override.stands_in in listed


def test_cards_listed_with_matrix_instructions_have_them():
    none = {name for name, entry in MATRIX.architectures.items() if not entry.matrix_units}
    assert {"gfx900", "gfx906", "gfx1030", "gfx1036"} <= none
    assert not none & {"gfx908", "gfx942", "gfx1100", "gfx1151", "gfx1201"}
