"""Choice of a probe's device, or the reason why there is none.

torch is imported inside the functions: an image may hold ROCm's libraries and no torch at all.
"""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Mapping
from pathlib import Path

from trainer.diagnostics.probes.verdict import Device, Kind

KFD, DXG = Path("/dev/kfd"), Path("/dev/dxg")


class NoDeviceError(Exception):
    """The kind of device that was asked for cannot be used here; `reason` is one sentence."""

    def __init__(self, reason: str, versions: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.versions = dict(versions or {})


def has_torch() -> bool:
    """Return whether torch is installed. Does not import it."""
    return importlib.util.find_spec("torch") is not None


def build_kind() -> Kind:
    """Return the kind of device that the installed torch was built for."""
    import torch

    if torch.version.hip:
        return "rocm"
    return "cuda" if torch.version.cuda else "cpu"


def place(expect: str) -> Device:
    """Return the device to run on: the first card where one is seen, the CPU where `expect` allows it.

    Raises:
        NoDeviceError: `cuda` or `rocm` is expected, and torch was built for something else or sees no card.
    """
    build = build_kind()
    if expect not in ("any", "cpu") and expect != build:
        raise NoDeviceError(f"A {expect} card was expected, and this torch is built for {build}.", versions())
    if expect == "cpu" or build == "cpu":
        return cpu()
    if card_count() > 0:
        return card(0)
    if expect == "any":
        return cpu()
    raise NoDeviceError(f"No {expect} card: {why_no_card(build)}.", versions())


def card_count() -> int:
    """Return how many cards torch can use."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def card(index: int) -> Device:
    """Describe the card with torch's number `index`."""
    import torch

    properties = torch.cuda.get_device_properties(index)
    kind = build_kind()
    arch = properties.gcnArchName if kind == "rocm" else f"sm_{properties.major}{properties.minor}"
    return Device(kind=kind, name=properties.name, arch=arch)


def card_ids() -> tuple[str, ...]:
    """Name every card that torch can use by its PCI address, in torch's order; by its number where that is unknown.

    Partitions of one card share its address and differ by a number behind it.
    """
    addresses = [pci_address(index) or f"card {index}" for index in range(card_count())]
    return tuple(
        address if addresses.count(address) == 1 else f"{address}#{addresses[:index].count(address)}"
        for index, address in enumerate(addresses)
    )


def pci_address(index: int) -> str | None:
    """Return domain:bus:device of the card with torch's number `index`; None where this torch does not report it."""
    import torch

    try:
        properties = torch.cuda.get_device_properties(index)
    except (AssertionError, RuntimeError):  # it has a number, and torch cannot look at it
        return None
    parts = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    if not all(isinstance(part, int) for part in parts):
        return None
    domain, bus, device = parts
    return f"{domain:04x}:{bus:02x}:{device:02x}"


def cpu() -> Device:
    """Describe this machine's processor."""
    return Device(kind="cpu", name=_processor_name(), arch=platform.machine())


def versions() -> dict[str, str]:
    """Return the versions of Python, of torch and of what torch was built against."""
    import torch

    named = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "hip": torch.version.hip,
        "cuda": None if torch.version.hip else torch.version.cuda,
    }
    return {name: version for name, version in named.items() if version}


def why_no_card(kind: str, kfd: Path = KFD, dxg: Path = DXG) -> str:
    """Return the likeliest reason, read from the device nodes, why a build for `kind` sees no card.

    Args:
        kind: rocm, cuda or cpu.
        kfd: node of the kernel driver.
        dxg: node through which WSL reaches cards.
    """
    if kind != "rocm":
        return "torch sees none"
    if dxg.exists() and not kfd.exists():
        return f"this is WSL, whose cards are behind {dxg}: torch needs a build of ROCm for it and Windows' driver"
    if not kfd.exists():
        return f"there is no {kfd} here (no amdgpu driver, or the container was not given the device)"
    if not os.access(kfd, os.R_OK | os.W_OK):
        return f"uid {os.geteuid()} may not read and write {kfd} (add the numeric group that owns it)"
    return f"{kfd} can be opened and torch still sees none (check HIP_VISIBLE_DEVICES and /dev/dri/renderD*)"


def _processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def computes_bf16(device: Device) -> bool:
    """Return whether a card computes in bf16 itself, by its architecture; torch is asked of one that is not known.

    `torch.cuda.is_bf16_supported` is true on every ROCm build, as a card without bf16 instructions emulates them
    (torch 2.13, torch/cuda/__init__.py).
    """
    import torch

    from trainer.device import architectures

    known = architectures.KNOWN.get(device.arch.partition(":")[0])
    if device.kind == "rocm" and known is not None:
        return bool(known["autocast"]) and known["autocast"]["format"] == "bf16"
    return device.kind != "cpu" and torch.cuda.is_bf16_supported()


def dtypes(device: Device) -> tuple[str, ...]:
    """Return the number formats that are trained in on a device, by torch's names."""
    if device.kind == "cpu":
        return ("float32", "bfloat16")
    return ("float32", "float16", "bfloat16") if computes_bf16(device) else ("float32", "float16")
