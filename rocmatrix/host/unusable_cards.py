"""Why cards of AMD's that are there serve no run. Pure, over what was read of the PCI bus and the driver."""

from __future__ import annotations

from collections.abc import Sequence

from rocmatrix.host.pci_device import PciDevice, served_devices
from rocmatrix.host.processors import INTEGRATED
from rocmatrix.host.sysfs import Files
from rocmatrix.matrix.naming import device_ids


def none_serves(devices: Sequence[PciDevice], reason: str | None) -> str:
    """Return the devices of a machine of which none serves a run, and why."""
    found = ", ".join(device.summary for device in devices)
    return f"{len(devices)} AMD card(s) are there and cannot be used ({found}): {reason}"


def left_out(devices: Sequence[PciDevice], listed: Sequence[str | None], hidden: int) -> str | None:
    """Return the discrete cards on the bus that the kernel's topology lacks while it has others; None for none.

    An external card whose link carries no atomics is such a one (`kfd: skipped device ..., PCI rejects atomics`).

    Args:
        devices: AMD's display and compute devices on the bus.
        listed: PCI addresses of the cards in the topology.
        hidden: nodes that the kernel keeps from this process; with any, the rest of the bus is not this process's.
    """
    absent = [
        device
        for device in devices
        if device.address not in listed and f"{device.address[:-1]}0" not in listed and _is_discrete(device)
    ]
    if hidden or not absent:
        return None
    found = "; ".join(f"{device.summary}, {_obstacle(device)}" for device in absent)
    return f"{len(absent)} AMD card(s) more are there and cannot be used ({found}; see ./invokew doctor)"


def _is_discrete(device: PciDevice) -> bool:
    architecture = device_ids.architecture(device.device_id)
    return architecture is not None and architecture not in INTEGRATED


def _obstacle(device: PciDevice) -> str:
    return f"whose driver is {device.driver}" if device.taken else "which is not in the kernel's KFD topology"


def why_none(
    files: Files, *, hidden: int, wsl2: bool, kfd: bool, loaded: bool, topology: bool, devices: Sequence[PciDevice]
) -> str:
    """Return why a machine shows no card.

    Args:
        hidden: nodes that the kernel keeps from this process.
        wsl2: cards are behind Windows' driver.
        kfd: /dev/kfd is there.
        loaded: the amdgpu driver is.
        topology: the kernel's topology lists anything.
        devices: AMD's graphics devices on the PCI bus.
    """
    if wsl2:
        return "this is WSL2: cards are reached through /dev/dxg, and there is no /dev/kfd to pass on"
    if hidden:
        return f"{hidden} GPU node(s) are hidden from this process: its container was not given their render nodes"
    foreign = sorted({str(device.driver) for device in devices if device.taken})
    if foreign:
        return f"the driver of the card is {', '.join(foreign)}, and ROCm needs amdgpu"
    if kfd and not (loaded or topology or devices):
        return "/dev/kfd is there, so its driver is loaded; /sys, which is withheld, shows neither topology nor card"
    if not (loaded or served_devices(files)):
        return "the amdgpu driver is not loaded"
    return _why_unlisted(files, topology=topology, devices=devices)


def _why_unlisted(files: Files, *, topology: bool, devices: Sequence[PciDevice]) -> str:
    """Return why a loaded driver shows no card."""
    if devices and all(device.driver is None for device in devices) and files.exists("sys/bus/pci/drivers/amdgpu"):
        return "amdgpu is loaded and has taken no card: its start failed (see the kernel's log), or nomodeset is set"
    if not topology:
        return "amdgpu is loaded, but the kernel shows no KFD topology: it was built without HSA_AMD, or not recorded"
    return "the kernel's KFD topology lists processors only"
