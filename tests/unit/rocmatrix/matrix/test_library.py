"""What the libraries bring to a combination, and what an override does on a card."""

import pytest

from rocmatrix.matrix import gfx, library
from rocmatrix.matrix.statement import Evidence, Selector
from tests.fixtures.cells import MATRIX


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


ABOUT = {
    "when": Selector(),
    "note": "a note",
    "evidence": Evidence(sources=["a test"], confidence="reported", date="2026-11-21"),
}


@pytest.mark.parametrize(
    ("architecture", "text"),
    [
        ("gfx942", "the default on gfx942; a note"),
        ("gfx1100", "accepted on gfx1100; a note"),
        ("gfx906", "not accepted, so hipBLAS is used on gfx906; a note"),
        (None, "not accepted, so hipBLAS is used on a CPU; a note"),
    ],
)
def test_hipblaslt_is_the_default_accepted_or_replaced(architecture, text):
    statement = library.HipblasLt(**ABOUT, accepted=["gfx942", "gfx1100"], preferred=["gfx942"])
    assert statement.summary(architecture) == text


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        ("gfx942", "flash and memory-efficient kernels"),
        ("gfx1100", "kernels with TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1, else the plain implementation"),
        ("gfx906", "the plain implementation"),
    ],
)
def test_attention_of_an_architecture_is_summed_up(architecture, kind):
    statement = library.Attention(**ABOUT, supported=["gfx942"], experimental=["gfx1100"])
    assert statement.summary(architecture) == f"{kind} on {architecture}; a note"
    assert library.Attention(**ABOUT, supported=["gfx942"]).summary(None).endswith("implementation on a CPU; a note")


@pytest.mark.parametrize(("grows", "text"), [(True, "expandable_segments works"), (False, "no expandable_segments")])
def test_allocators_variables_are_listed_by_weight(grows, text):
    statement = library.Allocator(**ABOUT, variables=["B", "A"], expandable_segments=grows)
    assert statement.summary("gfx1100") == f"reads B, then A; {text}; a note"


def test_driver_without_a_known_user_space_names_none():
    assert library.Driver(**ABOUT, kernel="6.8").summary(None) == "6.8; a note"
    assert library.Driver(**ABOUT, kernel="6.8", user_space="<7").summary(None) == "6.8 for ROCm <7; a note"


def test_libraries_answer_by_name_with_an_empty_list_where_nothing_is_known():
    kernels = library.MissingKernels(**ABOUT | {"when": Selector(architectures=["gfx90c"])}, id="no-kernels")
    empty = {name: [] for name in library.Libraries.model_fields}
    found = library.Libraries(**empty | {"rocblas": [kernels]})
    assert found.of(architecture="gfx90c", torch="2.9.1", rocm="7.2") == empty | {"rocblas": [kernels]}
    assert found.of(architecture="gfx906", torch="2.9.1", rocm="7.2") == empty
    assert list(found.by_name) == ["rocblas", "rccl", "hipblaslt", "attention", "allocator", "drivers"]
    assert kernels.summary("gfx90c") == "a note"
