"""Target IDs, as compilers and as file names write them."""

import pytest

from rocmatrix.host.processors import GENERIC
from rocmatrix.verify.devicecode.target import Target, parse, parse_entry_id


@pytest.mark.parametrize(
    ("text", "processor", "features"),
    [
        ("gfx1100", "gfx1100", ()),
        ("gfx90a:sramecc+:xnack-", "gfx90a", ("sramecc+", "xnack-")),
        ("gfx90a:xnack-:sramecc+", "gfx90a", ("sramecc+", "xnack-")),
        ("gfx90a-xnack+", "gfx90a", ("xnack+",)),
        ("gfx9-4-generic", "gfx9-4-generic", ()),
        ("gfx1250-strict", "gfx1250-strict", ()),
        ("gfx11xx", "gfx11xx", ()),
    ],
)
def test_target_is_read(text, processor, features):
    assert parse(text) == Target(processor=processor, features=features)


@pytest.mark.parametrize("text", ["", "gfx", "sm_90", "gfx1100 ", "gfx1100:", "gfx1100:fast+", "xgfx1100", "gfx11zz"])
def test_text_that_is_no_target_gives_none(text):
    assert parse(text) is None


@pytest.mark.parametrize(
    ("entry", "target"),
    [
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", "gfx90a:xnack+"),
        ("hip-amdgcn-amd-amdhsa-gfx906", "gfx906"),
        ("openmp-amdgcn-amd-amdhsa--gfx1100", "gfx1100"),
        ("hipv4-amdgcn-amd-amdhsa-unknown-gfx1201", "gfx1201"),
    ],
)
def test_entry_id_holds_a_target(entry, target):
    assert str(parse_entry_id(entry)) == target


@pytest.mark.parametrize("entry", ["host-x86_64-unknown-linux-gnu-", "cuda-nvptx64-nvidia-cuda-sm_90", "gfx1100"])
def test_other_entries_hold_no_target(entry):
    assert parse_entry_id(entry) is None


def test_code_runs_on_its_own_processor_whatever_its_features():
    assert Target(processor="gfx90a", features=("xnack+",)).runs_on("gfx90a")
    assert not Target(processor="gfx90a").runs_on("gfx908")
    assert not Target(processor="gfx1100").runs_on("gfx110")


def test_generic_code_and_family_folders_run_on_several():
    assert Target(processor="gfx11-generic").runs_on("gfx1151")
    assert not Target(processor="gfx11-generic").runs_on("gfx1201")
    assert Target(processor="gfx11xx").runs_on("gfx1151")
    assert Target(processor="gfx110x").runs_on("gfx1103")
    assert not Target(processor="gfx110x").runs_on("gfx1151")
    assert Target(processor="gfx1250-strict").runs_on("gfx1250")


def test_generic_processors_are_targets():
    assert all(parse(name) for name in GENERIC)
