"""Inputs of the doctor, read once: the hardware, and the other facts of a host.

Files are read below a root given as a parameter. What belongs to a running machine alone (its engine, its disk,
this user) is None where the root is a recorded tree, and the checks report that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rocmatrix.host import hardware
from rocmatrix.host.hardware import Hardware
from rocmatrix.host.pci_device import served_devices
from rocmatrix.host.sysfs import Files
from rocmatrix.matrix.matrix import Cell

NO_CARD = "no AMD card was found in this machine"
BLACKLISTS = ("modprobe.blacklist", "module_blacklist")  # the second keeps modprobe itself from loading a module
MEMLOCK_ROW = re.compile(r"^Max locked memory\s+(\S+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class User:
    """A process's numeric ids."""

    uid: int
    groups: frozenset[int]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A container engine. `version` is None where none answers, and `obstacle` is the reason.

    security: names of its security options, such as rootless. kept: why its containers reach no card of this machine,
    and what helps; None where nothing is known.
    """

    version: str | None
    obstacle: str | None = None
    cdi_folders: tuple[str, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    security: frozenset[str] = frozenset()
    kept: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Disk:
    """The file system that holds the engine's images."""

    path: str
    free_bytes: int


@dataclass(frozen=True, kw_only=True)
class Host:
    """Everything the checks read. Sizes in bytes; `devices` is whether the tree has a /dev at all."""

    hardware: Hardware
    amd_devices: tuple[str, ...] = ()
    served: bool = False
    command_line: str | None = None
    iommu: bool = False
    iommu_types: Mapping[str, str] = field(default_factory=dict)
    numa_nodes: int = 0
    numa_balancing: int | None = None
    memlock: str | None = None
    rdma: bool = False
    environment: Mapping[str, str] | None = None
    devices: bool = True
    shared_memory_bytes: int | None = None
    user: User | None = None
    engine: Engine | None = None
    disk: Disk | None = None
    cell: Cell | None = None

    @property
    def absent(self) -> bool:
        """Whether there is nothing of AMD's: no card on the bus, no driver, no topology, no WSL2."""
        machine = self.hardware
        found = machine.cards or machine.hidden_nodes or machine.driver or machine.kfd or machine.wsl2
        return not found and not self.amd_devices

    @property
    def barred(self) -> str | None:
        """Return the fix for words of the kernel's command line that keep amdgpu from a card, None without any."""
        pairs = [(word, *word.partition("=")[::2]) for word in (self.command_line or "").split()]
        kept = ("nomodeset", "amdgpu.modeset=0")
        words = [w for w, key, names in pairs if w in kept or (key in BLACKLISTS and "amdgpu" in names.split(","))]
        place = "/etc/default/grub, sudo update-grub and a restart, where GRUB starts this machine"
        return f"take {' '.join(words)} out of the kernel's command line: {place}" if words else None

    @property
    def no_card(self) -> str:
        """Why there is no card to judge, as text."""
        return NO_CARD if self.absent else self.hardware.reason or "there is no such card"


def read(
    files: Files,
    *,
    environment: Mapping[str, str] | None,
    cell: Cell | None = None,
    user: User | None = None,
    engine: Engine | None = None,
    disk: Disk | None = None,
    shared_memory_bytes: int | None = None,
) -> Host:
    """Read what `files` hold and join it with what only a running machine reports.

    Args:
        environment: variables of the shell; None where they are not this host's.
        shared_memory_bytes: size of /dev/shm; None where it is not known.
    """
    found = hardware.read_hardware(files)
    limits = MEMLOCK_ROW.search(files.text("proc/self/limits") or "")
    return Host(
        hardware=found,
        amd_devices=tuple(device.address for device in found.devices),
        served=bool(served_devices(files)),
        command_line=files.word("proc/cmdline"),
        iommu=bool(files.names("sys/class/iommu")),
        iommu_types=_iommu_types(files, found),
        numa_nodes=sum(re.fullmatch(r"node\d+", name) is not None for name in files.names("sys/devices/system/node")),
        numa_balancing=files.number("proc/sys/kernel/numa_balancing"),
        memlock=limits[1] if limits else None,
        rdma=bool(files.names("sys/class/infiniband")),
        environment=environment,
        devices=bool(files.names("dev")),
        shared_memory_bytes=shared_memory_bytes,
        user=user,
        engine=engine,
        disk=disk,
        cell=cell,
    )


def live(root: Path, *, cell: Cell | None, environment: Mapping[str, str]) -> Host:
    """Read a host. What only a running machine reports is read where `root` is this machine's own.

    Args:
        root: root of the file tree; / for this machine.
        environment: variables of the shell by name.
    """
    files = Files(root)
    if files.root != Path("/"):
        return read(files, environment=None, cell=cell)
    engine, folder = query_engine()
    return read(
        files,
        environment=environment,
        cell=cell,
        user=User(uid=os.getuid(), groups=frozenset({os.getgid(), *os.getgroups()})),
        engine=engine,
        disk=_disk(folder),
        shared_memory_bytes=_size("/dev/shm"),
    )


def query_engine() -> tuple[Engine, str | None]:
    """Return what the engine reports of itself, and the folder that holds its images."""
    from rocmatrix.containers import engine
    from rocmatrix.runtime.errors import RocmatrixError

    try:
        client = engine.connect()
    except RocmatrixError as error:
        return Engine(version=None, obstacle=f"{error.where}: {error.what}"), None
    try:
        info = client.info()
    finally:
        client.close()
    found = Engine(
        version=str(info.get("ServerVersion") or ""),
        cdi_folders=tuple(info.get("CDISpecDirs") or ()),
        cdi_devices=tuple(row.get("ID", "") for row in info.get("DiscoveredDevices") or ()),
        security=engine.security_options(info),
        kept=kept if any(kept := engine.kept_from_cards(info)) else None,
    )
    return found, info.get("DockerRootDir")


def _iommu_types(files: Files, found: Hardware) -> dict[str, str]:
    addresses = (card.pci_address for card in found.cards)
    rows = ((address, files.word(f"sys/bus/pci/devices/{address}/iommu_group/type")) for address in addresses)
    return {address: kind for address, kind in rows if address and kind}


def _disk(folder: str | None) -> Disk | None:
    import shutil

    path = folder if folder and Path(folder).exists() else None
    try:
        return Disk(path=path, free_bytes=shutil.disk_usage(path).free) if path else None
    except OSError:
        return None


def _size(path: str) -> int | None:
    try:
        held = os.statvfs(path)
    except OSError:
        return None
    return held.f_frsize * held.f_blocks
