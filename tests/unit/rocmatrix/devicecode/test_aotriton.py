"""AOTriton's images: the first kernel that compiled speaks for its file."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.devicecode import aotriton
from rocmatrix.devicecode.reading import DamagedError
from tests.fixtures import device_code as synthetic

CODE = synthetic.code_object("gfx942")


def test_an_image_tells_its_target_and_size():
    code = aotriton.read(io.BytesIO(synthetic.aks2(b"", CODE, CODE)))
    assert (str(code.target), code.size) == ("gfx942", 2 * len(CODE))


def test_an_image_whose_kernels_did_not_compile_holds_none():
    assert aotriton.read(io.BytesIO(synthetic.aks2(b"", b""))) is None


def test_a_zip_holds_an_image_each():
    data = synthetic.aks2_zip(synthetic.aks2(CODE), synthetic.aks2(b""), synthetic.aks2(CODE))
    assert [str(code.target) for code in aotriton.read_zip(io.BytesIO(data))] == ["gfx942", "gfx942"]


@pytest.mark.parametrize("cut", [3, 15, 16, 40])
def test_a_cut_image_is_damage(cut):
    with pytest.raises(DamagedError):
        aotriton.read(io.BytesIO(synthetic.aks2(CODE)[:cut]))


def test_a_directory_larger_than_the_image_is_damage():
    with pytest.raises(DamagedError, match="directory"):
        aotriton.read(io.BytesIO(b"AKS2" + (5).to_bytes(4, "little") * 2 + (9).to_bytes(4, "little")))


@given(st.binary(max_size=300), st.booleans())
def test_garbage_is_damage(rest, zipped):
    data = aotriton.ZIP_MAGIC + rest if zipped else b"AKS2\x99\0\0\0\1\0\0\0\x10\0\0\0" + rest
    with pytest.raises(DamagedError):
        list(aotriton.read_zip(io.BytesIO(data))) if zipped else aotriton.read(io.BytesIO(data))
