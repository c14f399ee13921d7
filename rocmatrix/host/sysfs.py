"""The thin edge to /sys and /dev, and the kernel's KFD topology read through it.

Names and units of the topology: Linux `drivers/gpu/drm/amd/amdkfd/kfd_topology.c`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.host.link import Link

# A recording often holds only the lower part of /sys, so each level is looked for.
TOPOLOGY_FOLDERS = (
    "sys/class/kfd/kfd/topology",
    "sys/devices/virtual/kfd/kfd/topology",
    "class/kfd/kfd/topology",
    "devices/virtual/kfd/kfd/topology",
    "kfd/topology",
    "topology",
    ".",
)
LINK_FOLDERS = ("io_links", "p2p_links")  # since Linux 6.0 what goes through another node stands in the second
LARGEST_FILE = 1 << 20  # no file of the topology comes near
LARGEST_NUMBER = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True)
class DeviceNode:
    """A device file: path on the host, numeric owners, and the nine permission bits of `mode`.

    `place` is where it is found on this machine, where that is not `path`: the node of a simulated machine.
    """

    path: str
    uid: int
    gid: int
    mode: int
    place: str | None = None

    @property
    def host(self) -> str:
        """Where an engine finds it."""
        return self.place or self.path

    @property
    def open_to_all(self) -> bool:
        """Whether any user may read and write it."""
        return self.mode & 0o006 == 0o006

    def opens_for(self, *, uid: int, groups: frozenset[int]) -> bool:
        """Return whether a process with these ids and no capabilities may read and write it."""
        if uid == self.uid:
            return self.mode & 0o600 == 0o600
        if self.gid in groups:
            return self.mode & 0o060 == 0o060
        return self.open_to_all


class Files:
    """The one place that touches the disk: files below `root`, and nothing that a link leads to outside it."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def guarded_text(self, path: str) -> str | None:
        """Return a file's text, None where there is none. Raises PermissionError where the kernel withholds it."""
        content = self._bytes(path)
        return None if content is None else content.decode(errors="replace")

    def binary(self, path: str) -> bytes | None:
        """Return a file's bytes, None where it is absent or withheld."""
        try:
            return self._bytes(path)
        except PermissionError:
            return None

    def _bytes(self, path: str) -> bytes | None:
        try:
            real = self._inside(path)
            if not stat.S_ISREG(real.stat().st_mode):  # reading a pipe or a terminal would never end
                return None
            with real.open("rb") as file:
                return file.read(LARGEST_FILE)
        except PermissionError:
            raise
        except (OSError, ValueError):  # ValueError: a name with a NUL
            return None

    def text(self, path: str) -> str | None:
        """Return a file's text, None where it is absent or withheld."""
        try:
            return self.guarded_text(path)
        except PermissionError:
            return None

    def word(self, path: str) -> str | None:
        """Return the content of a one-line file without its line end and padding, None where it is absent or empty."""
        # recordings and some files of firmware are padded with NUL
        return (self.text(path) or "").strip("\0 \t\r\n") or None

    def numbers(self, folder: str) -> list[int]:
        """Return the numbered entries of a folder in numeric order: node 10 comes after node 2."""
        try:
            return sorted(int(entry.name) for entry in self._inside(folder).iterdir() if is_unsigned(entry.name))
        except OSError:
            return []

    def number(self, path: str) -> int | None:
        """Return a file that holds one unsigned number, None where it holds anything else."""
        word = self.word(path) or ""
        return int(word) if is_unsigned(word) else None

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; none where it cannot be read."""
        try:
            return self.guarded_names(folder)
        except PermissionError:
            return []

    def guarded_names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted. Raises PermissionError where the kernel withholds them."""
        try:
            return sorted(entry.name for entry in self._inside(folder).iterdir())
        except PermissionError:
            raise
        except (OSError, ValueError):  # ValueError: a name with a NUL
            return []

    def target(self, path: str) -> str | None:
        """Return what a link names, wherever that is, None where it is no link or cannot be read."""
        try:
            return str((self._inside(path.rpartition("/")[0]) / path.rpartition("/")[2]).readlink())
        except (OSError, ValueError):
            return None

    def real(self, path: str) -> str | None:
        """Return where `path` leads, as a path below the root; None where that is nowhere or outside."""
        try:
            found = self._inside(path)
        except OSError:
            return None
        return found.relative_to(self.root).as_posix() if found.exists() else None

    def exists(self, path: str) -> bool:
        """Return whether something is there."""
        return self.stat(path) is not None

    def stat(self, path: str) -> os.stat_result | None:
        """Return the status of a file, None where it cannot be had."""
        try:
            return self._inside(path).stat()
        except OSError:
            return None

    def node(self, path: str) -> DeviceNode | None:
        """Return a device file by its absolute path. An engine leaves an empty folder for a missing one."""
        found = self.stat(path.lstrip("/"))
        if found is None or stat.S_ISDIR(found.st_mode):
            return None
        return DeviceNode(path=path, uid=found.st_uid, gid=found.st_gid, mode=stat.S_IMODE(found.st_mode))

    def _inside(self, path: str) -> Path:
        real = Path(os.path.realpath(self.root / path))
        if not real.is_relative_to(self.root):
            raise FileNotFoundError(f"{path} leads out of {self.root}")
        return real


@dataclass(frozen=True, kw_only=True)
class TopologyNode:
    """A node of the KFD topology as parsed: GPU or CPU. `gpu_id` is None where the file is missing."""

    number: int
    gpu_id: int | None
    properties: Mapping[str, int]
    banks: tuple[Mapping[str, int], ...]
    links: tuple[Link, ...]

    @property
    def is_gpu(self) -> bool:
        """A CPU node has gpu_id 0; where no gpu_id is reported, it has neither SIMD units nor a gfx version."""
        if self.gpu_id is not None:
            return self.gpu_id != 0
        return bool(self.properties.get("simd_count") or self.properties.get("gfx_target_version"))


def read_nodes(files: Files) -> tuple[list[TopologyNode], int]:
    """Return the readable nodes in numeric order, and how many the kernel hides."""
    nodes: list[TopologyNode] = []
    hidden = 0
    folders = (f"{top}/nodes" for top in TOPOLOGY_FOLDERS)
    folder = next((folder for folder in folders if files.numbers(folder)), "")
    for number in files.numbers(folder) if folder else ():
        try:
            nodes.append(_read_node(files, f"{folder}/{number}", number))
        except PermissionError:  # kfd_topology.c, node_show: -EPERM where the device cgroup denies the render node
            hidden += 1
    return nodes, hidden


def _read_node(files: Files, folder: str, number: int) -> TopologyNode:
    gpu_id = (files.guarded_text(f"{folder}/gpu_id") or "").strip()
    banks = files.numbers(f"{folder}/mem_banks")
    return TopologyNode(
        number=number,
        gpu_id=int(gpu_id) if is_unsigned(gpu_id) else None,
        properties=parse_properties(files.guarded_text(f"{folder}/properties") or ""),
        links=tuple(_links(files, folder, number)),
        banks=tuple(parse_properties(files.text(f"{folder}/mem_banks/{bank}/properties") or "") for bank in banks),
    )


def _links(files: Files, folder: str, number: int) -> Iterator[Link]:
    for kind in LINK_FOLDERS:
        for index in files.numbers(f"{folder}/{kind}"):
            properties = parse_properties(files.text(f"{folder}/{kind}/{index}/properties") or "")
            if "node_to" in properties:
                yield Link.parse(properties, node=number, direct=kind == LINK_FOLDERS[0])


def parse_properties(text: str) -> dict[str, int]:
    """Return the "key value" lines of a topology file; values are decimal and unsigned, up to 64 bits."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and is_unsigned(pair[1])}


def is_unsigned(text: str) -> bool:
    """Return whether `text` is a decimal number without a sign, no longer than one of 64 bits."""
    return text.isascii() and text.isdecimal() and len(text) <= 20 and int(text) <= LARGEST_NUMBER
