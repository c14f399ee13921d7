"""Archives: what is in them by target, and an archive that lists more than it holds."""

import io
import struct

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.verify.devicecode import kpack
from rocmatrix.verify.devicecode.reading import DamagedError
from tests.fixtures import device_code as synthetic

NAMES = st.sampled_from(["gfx906", "gfx90a:xnack+", "gfx1100", "gfx1250-strict"])
LIBRARIES = st.dictionaries(st.text(min_size=1, max_size=9), st.dictionaries(NAMES, st.integers(0, 2**40)), max_size=4)


def read(data):
    return kpack.read(io.BytesIO(data))


@given(LIBRARIES)
def test_archived_code_is_read_back(libraries):
    sizes = {}
    for kernels in libraries.values():
        for name, size in kernels.items():
            sizes[name] = sizes.get(name, 0) + size
    assert {str(code.target): code.size for code in read(synthetic.kpack(libraries))} == sizes


def test_target_that_is_listed_without_a_kernel_is_damage():
    with pytest.raises(DamagedError, match="lists gfx906, but holds no kernel"):
        read(synthetic.kpack({"libtorch_hip.so": {"gfx1100": 5}}, arches=["gfx1100", "gfx906"]))


def archive(table):
    return struct.pack("<4sIQ", b"KPAK", 1, 16) + table


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (synthetic.kpack({}, version=2), "version 2"),
        (b"KPAK", "ends within"),
        (struct.pack("<4sIQ", b"KPAK", 1, 999), "table"),
        (archive(msgpack.packb([1])), "no map"),
        (archive(msgpack.packb({"toc": {}})), "no list 'gfx_arches'"),
        (archive(msgpack.packb({"gfx_arches": [], "toc": {"lib": 5}})), "without kernels"),
        (archive(msgpack.packb({"gfx_arches": [], "toc": {"lib": {"gfx1100": 5}}})), "wrongly"),
        (archive(msgpack.packb({"gfx_arches": ["sm_90"], "toc": {}})), "'sm_90', which is no target"),
        (archive(b"\xc1"), "table"),
        (archive(b"\x91" * 3000), "table"),
    ],
)
def test_damage_is_reported_with_its_reason(data, words):
    with pytest.raises(DamagedError, match=words):
        read(data)


@given(st.binary(max_size=300), st.integers(0, 64))
def test_garbage_is_damage(rest, offset):
    with pytest.raises(DamagedError):
        read(struct.pack("<4sIQ", b"KPAK", 1, offset) + rest)
