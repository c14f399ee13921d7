"""AOTriton's kernel images: `.aks2` files, since 0.14 stored in one zip a kernel.

An `.aks2` file is `AKS2`, three sizes, then xz data: a directory, and behind it the code objects. A folder such as
`amd-gfx11xx` is for a family, and each of its files holds code for every processor of it; the directory names the
processor of each code object (`…--Arch_gfx1151`). Unfolding a file whole takes seconds and there are thousands, so
the directory is read, and the first code object that is not empty is compared with its entry. Sources:
ROCm/aotriton@27b92c90 v3src/packed_kernel_common.cc (the format), v3src/triton_kernel.cc@05ae0e82 (the names of code
objects), python/aks2.py, python/gpu_targets.py (which processors share a folder, by version), v3src/lszip.cc.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO

from rocmatrix.verify.devicecode import elf
from rocmatrix.verify.devicecode.code import CodeObject
from rocmatrix.verify.devicecode.reading import DamagedError, read_at
from rocmatrix.verify.devicecode.target import Target, parse

MAGIC = b"AKS2"
ZIP_MAGIC = b"PK\x03\x04"
MAX_DIRECTORY = 16 * 1024 * 1024  # bytes; a directory has a row of some hundred bytes for each kernel
_HEADER = struct.Struct("<4sIII")
_ROW = struct.Struct("<IIIII")  # shared memory, threads, offset, size of the code, length of the name
_PROCESSOR = b"--Arch_"

Row = tuple[int, int, bytes]  # offset behind the directory, size, name


def read(file: BinaryIO) -> list[CodeObject]:
    """Return the code of an `.aks2` file, its sizes summed by target. Raises `DamagedError`.

    Nothing for a file whose kernels are all empty, as AOTriton writes where a kernel did not compile.
    """
    magic, unfolded, count, directory = _HEADER.unpack(read_at(file, 0, _HEADER.size, "an AKS2 header"))
    if magic != MAGIC:
        raise DamagedError("no AKS2 file")
    if directory > min(unfolded, MAX_DIRECTORY):
        raise DamagedError(f"an AKS2 directory of {directory} bytes in {unfolded}")
    data = _first_bytes(file, directory + (elf.HEADER.size if unfolded > directory else 0))
    held = [row for row in _rows(data[:directory], count) if row[1]]
    if any(offset + size > unfolded - directory for offset, size, _ in held):
        raise DamagedError(f"an AKS2 directory names code beyond its {unfolded} bytes")
    return _objects(held, data[directory:]) if held else []


def _rows(directory: bytes, count: int) -> list[Row]:
    rows: list[Row] = []
    at = 0
    for _ in range(count):
        if at + _ROW.size > len(directory):
            raise DamagedError(f"an AKS2 directory ends before its {count} rows")
        _, _, offset, size, length = _ROW.unpack_from(directory, at)
        name = directory[at + _ROW.size : at + _ROW.size + length]
        at += _ROW.size + length
        rows.append((offset, size, name.rstrip(b"\0")))
    if at != len(directory):
        raise DamagedError(f"an AKS2 directory of {len(directory)} bytes, whose rows take {at}")
    return rows


def _objects(held: list[Row], first_code: bytes) -> list[CodeObject]:
    """Sum up by target. Code whose name gives none, as of assembled kernels, is taken to be like the first."""
    own = elf.code_object_target(elf.read_header(io.BytesIO(first_code)))
    named = [(_named(name), size) for _, size, name in sorted(held)]
    if (first := named[0][0]) is not None and first.processor != own.processor:
        raise DamagedError(f"an AKS2 directory names code for {first}, and the code is for {own}")
    sizes: Counter[Target] = Counter()
    for target, size in named:
        sizes[own if target is None or target.processor == own.processor else target] += size
    return [
        CodeObject(target=t, size=sizes[t], evidence="ELF flags" if t == own else "archive contents")
        for t in sorted(sizes)
    ]


def _named(name: bytes) -> Target | None:
    _, found, processor = name.rpartition(_PROCESSOR)
    return parse(processor.decode("ascii", "replace").partition("_")[0]) if found else None


def _first_bytes(file: BinaryIO, size: int) -> bytes:
    file.seek(_HEADER.size)
    try:
        with lzma.LZMAFile(file) as unfolding:
            data = unfolding.read(size)
    except (lzma.LZMAError, EOFError) as error:
        raise DamagedError(f"AKS2 data: {error}") from error
    if len(data) != size:
        raise DamagedError(f"AKS2 data ends {size - len(data)} bytes early")
    return data


def read_zip(file: BinaryIO) -> Iterator[CodeObject]:
    """Yield the code of every `.aks2` file in a zip. Raises `DamagedError`."""
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                with archive.open(member) as inner:
                    yield from read(io.BytesIO(inner.read(MAX_DIRECTORY)))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise DamagedError(f"AOTriton's zip: {error}") from error
