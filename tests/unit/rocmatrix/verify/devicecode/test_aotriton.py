"""AOTriton's images: the directory names the processors, and the first kernel that compiled must agree."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.verify.devicecode import aotriton
from rocmatrix.verify.devicecode.reading import DamagedError
from tests.fixtures import device_code as synthetic

CODE = synthetic.code_object("gfx942")


def test_image_has_its_target_and_size():
    (code,) = aotriton.read(io.BytesIO(synthetic.aks2(b"", CODE, CODE)))
    assert (str(code.target), code.size) == ("gfx942", 2 * len(CODE))


def test_image_whose_kernels_did_not_compile_holds_no_code():
    assert aotriton.read(io.BytesIO(synthetic.aks2(b"", b""))) == []


def test_file_of_a_family_holds_code_for_each_processor_of_it():
    """As in torch/lib/aotriton.images/amd-gfx11xx: one file, several processors, told apart by the entries' names."""
    arches = ["gfx1100", "gfx1151", "gfx1151"]
    image = synthetic.aks2(*map(synthetic.code_object, arches), arches=arches)
    found = aotriton.read(io.BytesIO(image))
    size = len(synthetic.code_object("gfx1151"))
    assert [(str(code.target), code.size, code.evidence) for code in found] == [
        ("gfx1100", size, "ELF flags"),
        ("gfx1151", 2 * size, "archive contents"),
    ]


def test_directory_that_names_another_processor_than_its_code_is_damage():
    with pytest.raises(DamagedError, match="names code for gfx950, and the code is for gfx942"):
        aotriton.read(io.BytesIO(synthetic.aks2(CODE, arches=["gfx950"])))


def test_member_that_is_no_image_is_damage():
    with pytest.raises(DamagedError, match="no AKS2"):
        list(aotriton.read_zip(io.BytesIO(synthetic.aks2_zip(CODE))))


def test_zip_holds_an_image_each():
    data = synthetic.aks2_zip(synthetic.aks2(CODE), synthetic.aks2(b""), synthetic.aks2(CODE))
    assert [str(code.target) for code in aotriton.read_zip(io.BytesIO(data))] == ["gfx942", "gfx942"]


@pytest.mark.parametrize("cut", [3, 15, 16, 40])
def test_cut_image_is_damage(cut):
    with pytest.raises(DamagedError):
        aotriton.read(io.BytesIO(synthetic.aks2(CODE)[:cut]))


def test_directory_larger_than_the_image_is_damage():
    with pytest.raises(DamagedError, match="directory"):
        aotriton.read(io.BytesIO(b"AKS2" + (5).to_bytes(4, "little") * 2 + (9).to_bytes(4, "little")))


@given(st.binary(max_size=300), st.booleans())
def test_garbage_is_damage(rest, zipped):
    data = aotriton.ZIP_MAGIC + rest if zipped else b"AKS2\x99\0\0\0\1\0\0\0\x10\0\0\0" + rest
    with pytest.raises(DamagedError):
        list(aotriton.read_zip(io.BytesIO(data))) if zipped else aotriton.read(io.BytesIO(data))
