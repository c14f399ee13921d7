"""One pass over a tree: its device code, its Python packages, leftovers of the build, and its size."""

from __future__ import annotations

import email.parser
import re
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from rocmatrix.matrix.kernel_library import KernelLibrary
from rocmatrix.verify import hygiene
from rocmatrix.verify.devicecode.filetree import Entry
from rocmatrix.verify.devicecode.inspection import DeviceFile, inspect
from rocmatrix.verify.files.tree import Tree

_METADATA = re.compile(r"/site-packages/[^/]+\.dist-info/METADATA$")
_HOST_TORCH = re.compile(r"/torch/lib/libtorch_cpu\.so$")
SMALL = 1024 * 1024  # bytes; metadata is a few kilobytes


@dataclass(frozen=True, kw_only=True)
class Library:
    """The files of one kernel library. `paths` are all of them, empty ones too; `files` those of device code."""

    name: str
    paths: tuple[str, ...]
    files: tuple[DeviceFile, ...]


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Content of a tree. `others` are host libraries with device code that no entry of matrix/kernels.yaml names.

    `packages` are installed distributions by canonical name; `size` is in bytes, each hard-linked file once.
    """

    libraries: tuple[Library, ...]
    others: tuple[DeviceFile, ...]
    host_torch: bool
    packages: dict[str, str]
    violations: dict[str, tuple[str, ...]]
    files: int
    size: int

    def library(self, name: str) -> Library:
        """Return one library; with no paths where the tree holds nothing of it."""
        found = (library for library in self.libraries if library.name == name)
        return next(found, Library(name=name, paths=(), files=()))


def read(entries: Iterable[Entry], libraries: Iterable[KernelLibrary], *, tree: Tree | None = None) -> Contents:
    """Read a tree once.

    Args:
        entries: every file of the tree.
        libraries: which files are kernel libraries; the first that fits counts.
        tree: takes every entry up by its bytes, where these are to be compared.
    """
    scan, hygiene_scan = _Scan(tuple(libraries)), hygiene.HygieneScan()
    for entry in entries:
        hygiene_scan.look(entry)
        if tree is not None:
            tree.look(entry)
        scan.look(entry)
    return scan.contents(hygiene_scan.found)


class _Scan:
    """What was found so far: kernel libraries by name, device code outside of them, packages, and how much it is."""

    def __init__(self, known: tuple[KernelLibrary, ...]) -> None:
        self.known = known
        self.paths: dict[str, list[str]] = {library.library: [] for library in known}
        self.device_files: dict[str, list[DeviceFile]] = {library.library: [] for library in known}
        self.others: list[DeviceFile] = []
        self.packages: dict[str, str] = {}
        self.host_torch = False
        self.files = self.size = 0

    def look(self, entry: Entry) -> None:
        """Take up one entry of the tree; only files are looked into."""
        self.size += entry.size
        if entry.kind != "file":
            return
        self.files += 1
        self.host_torch = self.host_torch or _HOST_TORCH.search(entry.path) is not None
        self.packages |= _package(entry)
        name = next((library.library for library in self.known if library.holds(entry.path)), None)
        if name is not None:
            self.paths[name].append(entry.path)
        found = inspect(entry) if entry.size else None
        if found is not None:
            (self.others if name is None else self.device_files[name]).append(found)

    def contents(self, violations: dict[str, tuple[str, ...]]) -> Contents:
        """Return what was found, with the violations of hygiene by kind."""
        libraries = (Library(name=n, paths=tuple(self.paths[n]), files=tuple(self.device_files[n])) for n in self.paths)
        return Contents(
            libraries=tuple(libraries),
            others=tuple(self.others),
            host_torch=self.host_torch,
            packages=self.packages,
            violations=violations,
            files=self.files,
            size=self.size,
        )


def _package(entry: Entry) -> dict[str, str]:
    """Return {name: version} for a distribution's metadata: its contents count, not the name of its folder."""
    if not _METADATA.search(entry.path) or entry.path.startswith(hygiene.DISTRIBUTION):
        return {}
    with entry.open() as file:
        about = email.parser.BytesHeaderParser().parsebytes(file.read(SMALL))
    return {canonicalize_name(about.get("Name", "?")): str(about.get("Version", "?"))}
