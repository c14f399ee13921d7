"""ELF files: host libraries with device code in a section, and code objects for AMD GPUs.

Only the 64-bit little-endian form is read, the only one that AMD's tools write. Sources: the ELF
specification; llvm-project llvm/include/llvm/BinaryFormat/ELF.h (EM_AMDGPU, and the feature bits by code
object version). Processors and their numbers stand in `rocmatrix.host.processors`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from rocmatrix.host.processors import NUMBERS
from rocmatrix.verify.devicecode.reading import DamagedError, read_at
from rocmatrix.verify.devicecode.target import Target

MAGIC = b"\x7fELF"
EM_AMDGPU = 224
HEADER = struct.Struct("<4sBBBBB7xHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SHT_NOBITS = 8
MAX_SECTIONS = 100_000  # torch's largest libraries have some dozens
ABI_VERSION_V3 = 1  # e_ident[EI_ABIVERSION] of code object V3; the versions after it write two bits a feature

_TWO_BITS = {2: "-", 3: "+"}  # 0: the processor has no such feature; 1: any setting


@dataclass(frozen=True, kw_only=True)
class Header:
    """Fields of an ELF header that the readers use; offsets and sizes are in bytes."""

    abi_version: int
    machine: int
    flags: int
    sections_at: int
    section_size: int
    section_count: int
    names_index: int


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section's name and where its bytes lie in the file."""

    name: str
    kind: int
    offset: int
    size: int


def read_header(file: BinaryIO, *, at: int = 0) -> Header:
    """Read the ELF header at byte `at`. Raises `DamagedError` for anything but 64-bit little-endian ELF."""
    magic, bits, order, _, _, abi, _, machine, _, _, _, shoff, flags, _, _, _, size, count, names = HEADER.unpack(
        read_at(file, at, HEADER.size, "an ELF header")
    )
    if magic != MAGIC or bits != 2 or order != 1:
        raise DamagedError(f"no 64-bit little-endian ELF header at {at}")
    return Header(
        abi_version=abi,
        machine=machine,
        flags=flags,
        sections_at=shoff,
        section_size=size,
        section_count=count,
        names_index=names,
    )


def code_object_target(header: Header) -> Target:
    """Return what an AMD GPU code object is for. Raises `DamagedError` for a processor that no list knows."""
    processor = NUMBERS.get(header.flags & 0xFF)
    if header.machine != EM_AMDGPU or processor is None:
        raise DamagedError(f"machine {header.machine} with flags {header.flags:#x} is no AMD GPU that is known here")
    return Target(processor=processor, features=_features(header))


def _features(header: Header) -> tuple[str, ...]:
    if header.abi_version <= ABI_VERSION_V3:  # one bit each, and not set means off or not there
        return tuple(name for bit, name in ((0x200, "sramecc+"), (0x100, "xnack+")) if header.flags & bit)
    settings = (("sramecc", header.flags >> 10 & 3), ("xnack", header.flags >> 8 & 3))
    return tuple(name + _TWO_BITS[bits] for name, bits in settings if bits in _TWO_BITS)


def sections(file: BinaryIO, header: Header) -> Iterator[Section]:
    """Yield the sections of a file whose header starts at byte 0. Raises `DamagedError`."""
    count = header.section_count
    if not header.sections_at:
        return
    if count == 0:  # more than fit the field: the first section's size says how many
        count = _raw_section(file, header, 0)[5]
    if count > MAX_SECTIONS or header.section_size < SECTION.size:
        raise DamagedError(f"{count} ELF sections of {header.section_size} bytes")
    raw = [_raw_section(file, header, index) for index in range(count)]
    if not header.names_index < count:
        raise DamagedError("the ELF section names are missing")
    names = read_at(file, raw[header.names_index][4], raw[header.names_index][5], "the ELF section names")
    for entry in raw:
        name = names[entry[0] : names.find(b"\0", entry[0])].decode("ascii", "replace")
        yield Section(name=name, kind=entry[1], offset=entry[4], size=entry[5])


def _raw_section(file: BinaryIO, header: Header, index: int) -> tuple[int, ...]:
    where = header.sections_at + index * header.section_size
    return SECTION.unpack(read_at(file, where, SECTION.size, "an ELF section header"))


def size_of(file: BinaryIO, header: Header, *, at: int) -> int:
    """Return the size of an ELF file inside another: its section headers are the last thing that is written.

    Args:
        file: seekable file that holds the ELF file.
        at: offset in bytes at which that begins.
    """
    size = header.sections_at + header.section_count * header.section_size
    read_at(file, at + size - 1, 1, "the end of an ELF file")
    return size
