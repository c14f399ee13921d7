"""Inspection of one file: its format by its first bytes, and the code that it holds.

Host libraries carry code in `.hip_fatbin`; after a split into `.kpack` archives that section is zeroed and
`.rocm_kpack_ref` is there instead. Source: ROCm/rocm-kpack docs/multi_arch_packaging_with_kpack.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import BinaryIO, Literal

from rocmatrix.verify.devicecode import aotriton, bundle, elf, kpack, names
from rocmatrix.verify.devicecode.code import CodeObject
from rocmatrix.verify.devicecode.filetree import Entry
from rocmatrix.verify.devicecode.reading import DamagedError
from rocmatrix.verify.devicecode.target import Target

FATBIN_SECTION, KPACK_SECTION = ".hip_fatbin", ".rocm_kpack_ref"
SQLITE_MAGIC = b"SQLite format 3\0"

Format = Literal[
    "code object", "fat binary", "split host library", "bundle", "kpack", "AKS2", "AKS2 zip", "kernel database", "index"
]


@dataclass(frozen=True, kw_only=True)
class DeviceFile:
    """A file that holds device code, or is part of a library of it.

    `size` is in bytes as stored. `named` is the target in the name, `problem` why the bytes could not be read
    or disagree with the name.
    """

    path: str
    size: int
    format: Format
    objects: tuple[CodeObject, ...]
    named: Target | None = None
    problem: str | None = None

    @property
    def targets(self) -> frozenset[Target]:
        """What the file is for: by its bytes, or by its name where they hold no target."""
        found = frozenset(code.target for code in self.objects)
        return found or (frozenset({self.named}) if self.named else frozenset())

    @property
    def holds_code(self) -> bool:
        """Whether there is code in it, not just an index or tuning data for one target."""
        return bool(self.objects)


def inspect(entry: Entry) -> DeviceFile | None:
    """Read one file; None where it has nothing to do with device code."""
    named = names.target_of(entry.path)
    known = _reader(entry)
    if known is None:
        return _by_name(entry, named) if named else None
    kind, read = known
    try:
        with entry.open() as file:
            found, kind = tuple(read(file)), _refined(kind, file)
    except DamagedError as damage:
        return DeviceFile(path=entry.path, size=entry.size, format=kind, objects=(), named=named, problem=str(damage))
    if not found and kind == "fat binary":
        return None  # a host library like any other
    problem = _disagreement(named, found)
    return DeviceFile(path=entry.path, size=entry.size, format=kind, objects=found, named=named, problem=problem)


Reader = Callable[[BinaryIO], Iterable[CodeObject]]


def _reader(entry: Entry) -> tuple[Format, Reader] | None:
    head = entry.head
    if head.startswith(elf.MAGIC):
        machine = int.from_bytes(head[18:20], "little")
        return ("code object", _code_object) if machine == elf.EM_AMDGPU else ("fat binary", _host_library)
    if head.startswith((bundle.MAGIC, bundle.COMPRESSED_MAGIC)):
        return "bundle", lambda file: bundle.read_all(file, 0, entry.size)
    if head.startswith(kpack.MAGIC):
        return "kpack", kpack.read
    if head.startswith(aotriton.MAGIC):
        return "AKS2", aotriton.read
    if head.startswith(aotriton.ZIP_MAGIC) and "aotriton.images" in entry.path:
        return "AKS2 zip", aotriton.read_zip
    return None


def _code_object(file: BinaryIO) -> list[CodeObject]:
    header = elf.read_header(file)
    size = file.seek(0, 2)
    return [CodeObject(target=elf.code_object_target(header), size=size, evidence="ELF flags")]


def _host_library(file: BinaryIO) -> Iterable[CodeObject]:
    for section in elf.sections(file, elf.read_header(file)):
        if section.name == FATBIN_SECTION and section.kind != elf.SHT_NOBITS:
            yield from bundle.read_all(file, section.offset, section.offset + section.size)


def _refined(kind: Format, file: BinaryIO) -> Format:
    if kind == "fat binary" and any(s.name == KPACK_SECTION for s in elf.sections(file, elf.read_header(file))):
        return "split host library"
    return kind


def _by_name(entry: Entry, named: Target) -> DeviceFile:
    """A file whose bytes hold no target: MIOpen's compiled kernels in SQLite, or an index of a Tensile library."""
    kernels = entry.head.startswith(SQLITE_MAGIC) and entry.path.endswith(".kdb")
    code = CodeObject(target=named, size=entry.size, evidence="file name")
    return DeviceFile(
        path=entry.path,
        size=entry.size,
        format="kernel database" if kernels else "index",
        objects=(code,) if kernels else (),
        named=named,
    )


def _disagreement(named: Target | None, found: tuple[CodeObject, ...]) -> str | None:
    """Return where the bytes are for no card that the name stands for: the library would load them all the same."""
    if named is None or not found:
        return None
    wrong = {str(code.target) for code in found if not named.runs_on(code.target.processor)}
    return f"named for {named}, but holds code for {', '.join(sorted(wrong))}" if wrong else None
