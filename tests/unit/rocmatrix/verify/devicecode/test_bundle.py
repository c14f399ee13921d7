"""Bundles: every version and method there and back, several in a row, and damage told from code."""

import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.verify.devicecode import bundle, elf
from rocmatrix.verify.devicecode.reading import DamagedError
from tests.fixtures import device_code as synthetic

TARGETS = st.lists(
    st.sampled_from(["gfx906", "gfx90a:xnack+", "gfx90a:xnack-", "gfx942", "gfx1100", "gfx1201"]), unique=True
)
PLAIN = synthetic.plain_bundle({"gfx1100": synthetic.code_object("gfx1100")})


def read(data):
    return list(bundle.read_all(io.BytesIO(data), 0, len(data)))


def targets(data):
    return [str(code.target) for code in read(data)]


@given(TARGETS, st.integers(0, 9000), st.sampled_from([None, (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]))
def test_bundled_code_is_read_back(names, padding, packing):
    codes = {name: synthetic.code_object(name, padding=padding) for name in names}
    data = synthetic.plain_bundle(codes)
    if packing is not None:
        data = synthetic.compressed_bundle(data, version=packing[0], method=packing[1])
    assert [(str(c.target), c.size) for c in read(data)] == [(name, len(code)) for name, code in codes.items()]


@given(st.lists(st.sampled_from(["plain", "code", 1, 2, 3]), max_size=5))
def test_bundles_one_after_another_are_all_read(kinds):
    makers = {"plain": lambda: PLAIN, "code": lambda: synthetic.code_object("gfx1100")}
    parts = [makers.get(k, lambda k=k: synthetic.compressed_bundle(PLAIN, version=k))() for k in kinds]
    data = b"".join(part + bytes(-len(part) % 4096) for part in parts)
    assert targets(data) == ["gfx1100"] * len(kinds)


def test_bundle_of_padding_alone_holds_no_code():
    assert read(bytes(10_000)) == []
    assert read(b"") == []


def test_compressed_bundle_is_unfolded_at_its_beginning_only():
    large = synthetic.plain_bundle({"gfx1100": synthetic.code_object("gfx1100", padding=30_000_000)})
    packed = io.BytesIO(synthetic.compressed_bundle(large))
    data = bundle._Unfolding(packed, 32, len(packed.getvalue()), bundle.ZSTD)
    bundle.read_table(data.take)
    assert data.taken < 4096
    assert read(packed.getvalue())[0].size > 30_000_000


def test_entry_that_names_another_processor_than_its_code_is_damage():
    wrong = synthetic.plain_bundle({"gfx1100": synthetic.code_object("gfx906")})
    for data in (wrong, synthetic.compressed_bundle(wrong)):
        with pytest.raises(DamagedError, match="entry for gfx1100 holds code for gfx906"):
            read(data)


def test_entry_id_of_no_known_form_is_damage():
    with pytest.raises(DamagedError, match="hipv4-amdgcn-amd-amdhsa--fast1100"):
        read(synthetic.plain_bundle({"fast1100": b""}))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (PLAIN[:40], "ends within a bundle's table"),
        (PLAIN[:4200], "beyond its"),
        (b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 8, "entries"),
        (b"__CLANG_OFFLOAD_BUNDLE__" + (1).to_bytes(8, "little") + b"\xff" * 24, "characters"),
        (synthetic.compressed_bundle(PLAIN)[:-9], "where"),
        (synthetic.compressed_bundle(PLAIN, version=1)[:-9], "no end|early"),
        (b"CCOB\x09\x00" + bytes(40), "version 9"),
        (b"CCOB\x03\x00\x07\x00" + (80).to_bytes(8, "little") * 2 + bytes(56), "method 7"),
        (b"no bundle at all", "neither a bundle nor"),
    ],
)
def test_damage_is_reported_with_its_reason(data, words):
    with pytest.raises(DamagedError, match=words):
        read(data)


def test_code_that_begins_within_the_table_is_damage():
    broken = bytearray(PLAIN)
    second = 32 + 24 + len("host-x86_64-unknown-linux-gnu-")
    broken[second : second + 8] = (8).to_bytes(8, "little")
    with pytest.raises(DamagedError, match="within its table"):
        read(bytes(broken))


def test_unfolding_stops_at_the_size_that_is_named():
    data = bytearray(synthetic.compressed_bundle(synthetic.plain_bundle({"gfx1100": bytes(50_000)}), version=1))
    data[8:12] = (9000).to_bytes(4, "little")
    with pytest.raises(DamagedError, match="beyond its 9000"):
        read(bytes(data))


MAGICS = [b"", bundle.MAGIC, b"CCOB\1\0\1\0", b"CCOB\2\0\0\0", b"CCOB\3\0\1\0", elf.MAGIC]


@given(st.sampled_from(MAGICS), st.binary(max_size=400))
def test_garbage_is_damage_or_nothing_and_never_an_architecture(magic, rest):
    with contextlib.suppress(DamagedError):
        assert read(magic + rest) == []


@given(st.integers(0, len(PLAIN) - 1), st.integers(0, 255), st.booleans())
def test_changed_byte_changes_no_architecture(at, value, packed):
    """It is code for the same target, or damage: table and code would have to be changed alike."""
    data = bytearray(synthetic.compressed_bundle(PLAIN) if packed else PLAIN)
    data[at % len(data)] = value
    with contextlib.suppress(DamagedError):
        assert {code.target.processor for code in read(bytes(data))} <= {"gfx1100"}
