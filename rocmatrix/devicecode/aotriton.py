"""AOTriton's kernel images: `.aks2` files, since 0.14 stored in one zip a kernel.

An `.aks2` file is `AKS2`, three sizes, then xz data: a directory, and behind it the code objects. Unfolding
one whole takes seconds and there are thousands, so the first code object that is not empty speaks for its
file. Source: ROCm/aotriton@30ae9671 python/aks2.py, python/flatzip.py, v3src/packed_kernel_common.cc.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from rocmatrix.devicecode import elf
from rocmatrix.devicecode.code import CodeObject
from rocmatrix.devicecode.reading import DamagedError, read_at

MAGIC = b"AKS2"
ZIP_MAGIC = b"PK\x03\x04"
MAX_DIRECTORY = 16 * 1024 * 1024  # bytes; a directory has a row of some hundred bytes for each kernel
_HEADER = struct.Struct("<4sIII")


def read(file: BinaryIO) -> CodeObject | None:
    """Return the code of an `.aks2` file: all its bytes, under the target of the first. Raises `DamagedError`.

    None for a file whose kernels are all empty, as AOTriton writes where a kernel did not compile.
    """
    _, unfolded, _, directory = _HEADER.unpack(read_at(file, 0, _HEADER.size, "an AKS2 header"))
    if directory > min(unfolded, MAX_DIRECTORY):
        raise DamagedError(f"an AKS2 directory of {directory} bytes in {unfolded}")
    if unfolded == directory:
        return None
    data = _first_bytes(file, directory + elf.HEADER.size)
    header = elf.read_header(io.BytesIO(data[directory:]))
    return CodeObject(target=elf.code_object_target(header), size=unfolded - directory, evidence="ELF flags")


def _first_bytes(file: BinaryIO, size: int) -> bytes:
    file.seek(_HEADER.size)
    try:
        return lzma.LZMAFile(file).read(size)
    except (lzma.LZMAError, EOFError) as error:
        raise DamagedError(f"AKS2 data: {error}") from error


def read_zip(file: BinaryIO) -> Iterator[CodeObject]:
    """Yield the code of every `.aks2` file in a zip. Raises `DamagedError`."""
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                with archive.open(member) as inner:
                    found = read(io.BytesIO(inner.read(MAX_DIRECTORY)))
                if found is not None:
                    yield found
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise DamagedError(f"AOTriton's zip: {error}") from error
