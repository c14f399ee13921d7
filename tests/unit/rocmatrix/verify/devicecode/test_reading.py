"""Bytes at an offset: whole, or damage with the name of what was looked for."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.verify.devicecode.reading import MAX_READ, DamagedError, read_at


@given(st.binary(max_size=40), st.integers(0, 50), st.integers(0, 50))
def test_bytes_are_those_of_the_place_or_the_file_is_damaged(data, offset, size):
    if offset + size <= len(data) or size == 0:
        assert read_at(io.BytesIO(data), offset, size, "a table") == data[offset : offset + size]
    else:
        with pytest.raises(DamagedError, match=f"ends within a table at {offset}"):
            read_at(io.BytesIO(data), offset, size, "a table")


@pytest.mark.parametrize(("offset", "size"), [(-1, 1), (0, -1), (0, MAX_READ + 1), (2**63, 1)])
def test_place_that_no_file_has_is_damage_and_reads_nothing(offset, size):
    class Unread(io.BytesIO):
        def read(self, *_):
            raise AssertionError("nothing is read")

    with pytest.raises(DamagedError, match=f"a table of {size} bytes at {offset}"):
        read_at(Unread(b"abc"), offset, size, "a table")
