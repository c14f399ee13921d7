"""A card as PCI and DRM see it: memory, link, place and sensors, read below /sys.

File names and units: Linux `drivers/pci/pci-sysfs.c` (link), `drivers/gpu/drm/amd/amdgpu/amdgpu_vram_mgr.c` and
`amdgpu_gtt_mgr.c` (memory, bytes), `amdgpu_gfx.c` and `amdgpu_gmc.c` (partitions), `amdgpu_pm.c` (power, hwmon).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rocmatrix.host import product_names
from rocmatrix.host.sysfs import Files
from rocmatrix.matrix.naming import device_ids

AMD_VENDOR = "0x1002"  # cards and the switches on them; AMD's processors are 0x1022
SYS_FOLDERS = ("sys", ".")  # a recording may start inside /sys
DRM_FOLDERS = ("sys/class/drm", "class/drm", ".")
DISPLAY_CLASSES = ("0x03", "0x12")  # display and processing accelerator (PCI code and ID assignment)
OTHER_MAKERS = {"0x10de": "NVIDIA", "0x8086": "Intel", "0x1a03": "ASPEED"}  # the last draws a server's console
DEEPEST = 12
HOTTEST = 200.0  # degrees; a sensor that is not there may read 65535, and one that is read too often 511
_ADDRESS = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")


@dataclass(frozen=True, kw_only=True)
class PciDevice:
    """A display or compute device of AMD's on the PCI bus; `driver` is the one bound to it, None for none."""

    address: str
    device_id: int | None
    driver: str | None

    @property
    def taken(self) -> bool:
        """Whether another driver than amdgpu has the device."""
        return self.driver not in (None, "amdgpu")

    @property
    def summary(self) -> str:
        """The device as text: "0000:03:00.0, PCI device 0x744c, gfx1100"."""
        number = f", PCI device 0x{self.device_id:04x}" if self.device_id is not None else ""
        name = device_ids.architecture(self.device_id)
        return f"{self.address}{number}{f', {name}' if name else ''}"


@dataclass(frozen=True, kw_only=True)
class PciLink:
    """The link of a card to its slot. Speeds in GT/s for each lane, widths in lanes; None where not reported.

    Cards from Vega on carry a switch, and the GPU behind it always sees the full width. So this is the link of the
    outermost device of the card, and `port` is its address.
    """

    port: str | None
    speed: float | None
    width: int | None
    most_speed: float | None
    most_width: int | None
    slot_width: int | None

    @property
    def narrow(self) -> bool:
        """Whether the link has fewer lanes than the card can use."""
        return bool(self.width and self.most_width and self.width < self.most_width)

    @property
    def slow(self) -> bool:
        """Whether it runs slower than the card can. An idle card slows its link down by itself."""
        return bool(self.speed and self.most_speed and self.speed < self.most_speed)

    @property
    def summary(self) -> str:
        """The link as people write it: "x8 of x16, 16.0 of 16.0 GT/s"."""
        lanes = f"x{self.width or '?'} of x{self.most_width or '?'}"
        return f"{lanes}, {self.speed or '?'} of {self.most_speed or '?'} GT/s"


@dataclass(frozen=True, kw_only=True)
class Temperature:
    """One sensor in degrees Celsius, with the limit at which the card slows down or stops."""

    label: str
    degrees: float
    limit: float | None


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """A card as PCI and DRM report it. Memory in bytes; what is not reported is None."""

    folder: str
    product: str | None
    memory_bytes: int | None
    visible_bytes: int | None
    shared_bytes: int | None
    link: PciLink
    numa_node: int | None
    unique_id: str | None
    compute_partition: str | None
    memory_partition: str | None
    performance_level: str | None
    power_profile: str | None
    busy_percent: int | None
    temperatures: tuple[Temperature, ...]
    metrics: bytes | None
    revision: str | None = None

    @property
    def resizable(self) -> bool | None:
        """Whether the processor reaches all of the card's memory (Resizable BAR); None where sizes are not reported."""
        if not self.memory_bytes or self.visible_bytes is None:
            return None
        return self.visible_bytes >= self.memory_bytes


def read_adapter(
    files: Files, *, address: str | None, minor: int | None, device_id: int | None = None
) -> Adapter | None:
    """Return what is known of a card by its PCI address, its render minor or, on an old kernel, its device id.

    Args:
        address: PCI address, such as 0000:03:00.0.
        minor: number of the DRM render node, from 128.
        device_id: PCI device id, for kernels that give neither of the others.
    """
    folder = next(_folders(files, address, minor, device_id), None)
    if folder is None:
        return None
    get = files.number
    return Adapter(
        folder=folder,
        product=product_names.product(files, folder),
        memory_bytes=get(f"{folder}/mem_info_vram_total") or None,
        visible_bytes=get(f"{folder}/mem_info_vis_vram_total"),
        shared_bytes=get(f"{folder}/mem_info_gtt_total"),
        link=slot_link(files, folder),
        numa_node=get(f"{folder}/numa_node"),  # -1, no node, is no unsigned number
        unique_id=files.word(f"{folder}/unique_id"),
        compute_partition=files.word(f"{folder}/current_compute_partition"),
        memory_partition=files.word(f"{folder}/current_memory_partition"),
        performance_level=files.word(f"{folder}/power_dpm_force_performance_level"),
        power_profile=active_profile(files.text(f"{folder}/pp_power_profile_mode") or ""),
        busy_percent=get(f"{folder}/gpu_busy_percent"),
        temperatures=tuple(temperatures(files, folder)),
        metrics=files.binary(f"{folder}/gpu_metrics"),
        revision=files.word(f"{folder}/revision"),
    )


def amd_display_devices(files: Files) -> tuple[PciDevice, ...]:
    """Return AMD's display and compute devices in the order of their addresses, whether or not a driver serves them."""
    found: dict[str, str] = {}
    for folder in _drm_cards(files):
        if (slot := _uevent_value(files, folder, "PCI_SLOT_NAME")) is not None:
            found[slot] = folder
    for top in SYS_FOLDERS:
        for address in files.names(f"{top}/bus/pci/devices"):
            folder = f"{top}/bus/pci/devices/{address}"
            kind = (files.word(f"{folder}/class") or "")[:4]
            if files.word(f"{folder}/vendor") == AMD_VENDOR and kind in DISPLAY_CLASSES:
                found[address] = folder
    return tuple(_pci_device(files, address, found[address]) for address in sorted(found))


def served_devices(files: Files) -> list[str]:
    """Return the folders of cards whose DRM driver is amdgpu: proof that it is loaded where /sys/module is absent."""
    return [folder for folder in _drm_cards(files) if _uevent_value(files, folder, "DRIVER") == "amdgpu"]


def _pci_device(files: Files, address: str, folder: str) -> PciDevice:
    listed = (_uevent_value(files, folder, "PCI_ID") or "").partition(":")[2]
    number = files.word(f"{folder}/device") or f"0x{listed}"
    driver = (files.real(f"{folder}/driver") or "").rpartition("/")[2] or _uevent_value(files, folder, "DRIVER")
    return PciDevice(
        address=address,
        device_id=int(number, 16) if re.fullmatch(r"0x[0-9a-fA-F]{4}", number) else None,
        driver=driver,
    )


def active_profile(text: str) -> str | None:
    """Return the profile that `pp_power_profile_mode` marks with a star, such as "COMPUTE"."""
    rows = (line.replace("*", " * ").replace(":", " ").split() for line in text.splitlines())
    marked = next((row for row in rows if "*" in row), [])
    # a name may begin with a digit (3D_FULL_SCREEN), and the row begins with the profile's number
    return next((word for word in marked if re.fullmatch(r"(?=.*[A-Z])[A-Z0-9_]{2,}", word)), None)


def _folders(files: Files, address: str | None, minor: int | None, device_id: int | None) -> Iterator[str]:
    """Yield the folders that could be the card's. A partition's render node belongs to a platform device."""
    for top in SYS_FOLDERS:
        paths = [f"{top}/bus/pci/devices/{address}"] if address else []
        paths += [f"{top}/class/drm/renderD{minor}/device"] if minor else []
        # for a time, kernels added a partition's number to the function of its address
        paths += [f"{top}/bus/pci/devices/{address[:-1]}0"] if address else []
        for folder in paths:
            if files.word(f"{folder}/vendor") is not None or files.exists(f"{folder}/mem_info_vram_total"):
                yield files.real(folder) or folder
    yield from _cards(files, address, device_id)


def _cards(files: Files, address: str | None, device_id: int | None) -> Iterator[str]:
    for folder in _drm_cards(files):
        slot = _uevent_value(files, folder, "PCI_SLOT_NAME")
        if slot is None or address is None:
            alike = device_id is not None and files.word(f"{folder}/device") == f"0x{device_id:04x}"
        else:
            alike = slot == address
        if alike:
            yield files.real(folder) or folder


def _drm_cards(files: Files) -> Iterator[str]:
    """Yield the device folders of DRM's cards of this maker."""
    for top in DRM_FOLDERS:
        for name in files.names(top):
            folder = f"{top}/{name}/device"
            maker = files.word(f"{folder}/vendor") or f"0x{(_uevent_value(files, folder, 'PCI_ID') or '')[:4]}"
            if re.fullmatch(r"card\d+", name) and maker == AMD_VENDOR:
                yield folder


def _uevent_value(files: Files, folder: str, key: str) -> str | None:
    match = re.search(rf"^{key}=(\S+)$", files.text(f"{folder}/uevent") or "", re.MULTILINE)
    return match[1] if match else None


def slot_link(files: Files, folder: str) -> PciLink:
    """Return the link of a card to its slot as it is now.

    Args:
        folder: the card's PCI attributes, below the root of `files`.
    """
    outermost = folder
    above = folder
    for _ in range(DEEPEST):
        above = above.rpartition("/")[0]
        if not _ADDRESS.match(above.rpartition("/")[2]):
            break
        if files.word(f"{above}/vendor") == AMD_VENDOR:
            outermost = above
    port = outermost.rpartition("/")[2]
    slot = outermost.rpartition("/")[0]
    in_slot = bool(_ADDRESS.match(slot.rpartition("/")[2]))
    return PciLink(
        port=port if _ADDRESS.match(port) else None,
        speed=_speed(files.word(f"{outermost}/current_link_speed")),
        width=_lanes(files.word(f"{outermost}/current_link_width")),
        most_speed=_speed(files.word(f"{outermost}/max_link_speed")),
        most_width=_lanes(files.word(f"{outermost}/max_link_width")),
        slot_width=_lanes(files.word(f"{slot}/max_link_width")) if in_slot else None,
    )


def _speed(text: str | None) -> float | None:
    match = re.match(r"(\d{1,4}(?:\.\d{1,2})?) GT/s", text or "")
    return float(match[1]) if match else None


def _lanes(text: str | None) -> int | None:
    # 0 is a link that is down, and 255 one that the device does not describe
    return int(text) if text and re.fullmatch(r"\d{1,3}", text) and 0 < int(text) <= 32 else None


def temperatures(files: Files, folder: str) -> Iterator[Temperature]:
    """Yield the temperature sensors of a card that have a figure: 0 and what no card survives are none.

    Args:
        folder: the card's PCI attributes, below the root of `files`.
    """
    for name in files.names(f"{folder}/hwmon"):
        for index in range(1, 9):
            base = f"{folder}/hwmon/{name}/temp{index}"
            degrees = files.number(f"{base}_input")
            if degrees is not None and 0 < degrees / 1000 < HOTTEST:
                limit = files.number(f"{base}_crit")
                label = files.word(f"{base}_label") or f"sensor {index}"
                yield Temperature(label=label, degrees=degrees / 1000, limit=limit / 1000 if limit else None)


def other_makers(files: Files) -> list[str]:
    """Return display and compute devices of other makers than AMD, as text: "NVIDIA 10de:2204 at 0000:01:00.0"."""
    found = []
    for top in SYS_FOLDERS:
        for address in files.names(f"{top}/bus/pci/devices"):
            folder = f"{top}/bus/pci/devices/{address}"
            maker, kind = files.word(f"{folder}/vendor") or "", (files.word(f"{folder}/class") or "")[:4]
            if maker != AMD_VENDOR and kind in DISPLAY_CLASSES:
                ids = f"{maker.removeprefix('0x')}:{(files.word(f'{folder}/device') or '').removeprefix('0x')}"
                found.append(f"{OTHER_MAKERS.get(maker, 'maker')} {ids} at {address}")
    return found
