"""ELF headers and sections; code objects by version, for the features differ."""

import io

import pytest

from rocmatrix.host.processors import NUMBERS
from rocmatrix.verify.devicecode import elf
from rocmatrix.verify.devicecode.reading import DamagedError
from tests.fixtures import device_code as synthetic


def target(flags, abi):
    header = synthetic.elf_header(machine=elf.EM_AMDGPU, flags=flags, abi=abi)
    return str(elf.code_object_target(elf.read_header(io.BytesIO(header))))


@pytest.mark.parametrize("name", NUMBERS.values())
def test_processors_are_read_back(name):
    file = io.BytesIO(synthetic.code_object(name))
    assert elf.code_object_target(elf.read_header(file)).processor == name


@pytest.mark.parametrize(
    ("flags", "abi", "expected"),
    [
        (0x73F, 4, "gfx90a:xnack+"),  # Kernels.so-000-gfx90a-xnack+.hsaco of Debian's librocblas5 7.2.4
        (0x63F, 4, "gfx90a:xnack-"),
        (0x52F, 4, "gfx906"),  # any setting of both
        (0xF3F, 2, "gfx90a:sramecc+:xnack+"),
        (0x33F, 1, "gfx90a:sramecc+:xnack+"),  # version 3 has one bit each
        (0x041, 1, "gfx1100"),
    ],
)
def test_features_are_read_by_version(flags, abi, expected):
    assert target(flags, abi) == expected


@pytest.mark.parametrize("flags", [0x00, 0xFF, 0x27])
def test_unknown_processor_is_damage_and_no_guess(flags):
    with pytest.raises(DamagedError, match="no AMD GPU that is known here"):
        target(flags, 4)


def test_sections_are_found_by_name():
    file = io.BytesIO(synthetic.elf_with_sections({".text": b"code", ".hip_fatbin": b"x" * 100}))
    found = {section.name: section for section in elf.sections(file, elf.read_header(file))}
    assert found.keys() == {"", ".text", ".hip_fatbin", ".shstrtab"}
    file.seek(found[".hip_fatbin"].offset)
    assert file.read(found[".hip_fatbin"].size) == b"x" * 100


def test_more_sections_than_the_field_holds_are_counted_in_the_first():
    whole = bytearray(synthetic.elf_with_sections({".text": b"code"}))
    header = elf.read_header(io.BytesIO(whole))
    whole[60:62] = b"\0\0"  # e_shnum
    first = header.sections_at + 32  # sh_size of the first section header
    whole[first : first + 8] = header.section_count.to_bytes(8, "little")
    file = io.BytesIO(whole)
    assert [s.name for s in elf.sections(file, elf.read_header(file))] == ["", ".text", ".shstrtab"]


@pytest.mark.parametrize("cut", [10, 63, 64, 200, -1])
def test_cut_file_is_damage(cut):
    file = io.BytesIO(synthetic.elf_with_sections({".hip_fatbin": b"x" * 100})[:cut])
    with pytest.raises(DamagedError):
        list(elf.sections(file, elf.read_header(file)))


@pytest.mark.parametrize(("at", "value"), [(4, 1), (5, 2), (0, 0)])
def test_32_bit_big_endian_and_other_files_are_refused(at, value):
    whole = bytearray(synthetic.code_object("gfx1100"))
    whole[at] = value
    with pytest.raises(DamagedError, match="64-bit little-endian"):
        elf.read_header(io.BytesIO(whole))
