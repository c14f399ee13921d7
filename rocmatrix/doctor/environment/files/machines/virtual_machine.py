"""What a virtual machine of Proxmox VE that is given an AMD card lacks, or has twice."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmatrix.doctor.environment.files.machines.guest import Guest, Setting
from rocmatrix.doctor.environment.lint_input import FileFinding

_ON = ("1", "on", "yes", "true")
_ADDRESS = re.compile(r"(?:[a-f0-9]{4,}:)?[a-f0-9]{2}:[a-f0-9]{2}(?:\.[a-f0-9])?", re.IGNORECASE)
# words for a card of AMD's; a device of no such name may be a network card
_CARD = re.compile(r"rocm|radeon|instinct|\bamdgpu|\brx[\s_-]?\d{3,4}|\bmi\d{2,3}x?\b|navi|vega")
_CONSUMER = re.compile(r"radeon|\brx[\s_-]?\d{3,4}|navi")  # these have a function for sound next to the card's


def findings(guest: Guest) -> Iterator[FileFinding]:
    """Yield what qemu-server refuses, whatever the device is, and what a graphics card needs."""
    devices = list(guest.of("hostpci#"))
    q35 = "q35" in guest.value("machine")
    for device in devices:
        yield from _refused(device, q35=q35)
    yield from _twice(devices)
    for card in _cards(devices, guest):
        yield from _card(card, guest, q35=q35)
        yield from _functions(card, devices, guest)


def _cards(devices: list[Setting], guest: Guest) -> list[Setting]:
    """Return devices that are cards by their own words, else the first of a machine that is named for AMD's cards."""
    whole = [one for one in devices if not one.options.get("mdev") and not _of_second_function(one)]
    own = [one for one in whole if _on(one.options, "x-vga") or _CARD.search(one.value.lower())]
    return own or (whole[:1] if _CARD.search(guest.named) else [])


def _of_second_function(device: Setting) -> bool:
    return all(re.search(r"\.[1-9a-f]$", one) for one in _addresses(device) or ["none"])


def _on(options: dict[str, str], name: str) -> bool:
    return options.get(name, "").lower() in _ON


def _addresses(device: Setting) -> list[str]:
    """Return the addresses that a device names, without the domain 0000, in small letters."""
    listed = device.first or device.options.get("host", "")
    return [one.lower().removeprefix("0000:") for one in listed.split(";") if one]


def _refused(device: Setting, *, q35: bool) -> Iterator[FileFinding]:
    if any(not _ADDRESS.fullmatch(one) for one in _addresses(device)):
        yield device.found(
            "hostpci-address", "error", "that is no address of a PCI device, and the machine does not start",
            "the address that lspci -D prints, with two digits each: 0000:03:00",
        )  # fmt: skip
    if _on(device.options, "pcie") and not q35:
        yield device.found(
            "pcie-without-q35", "error", "pcie=1 needs the machine model q35; the machine does not start",
            "machine: q35",
        )  # fmt: skip


def _twice(devices: list[Setting]) -> Iterator[FileFinding]:
    seen: list[str] = []
    for device in devices:
        for address in _addresses(device):
            if any(address == one or address.startswith(f"{one}.") or one.startswith(f"{address}.") for one in seen):
                yield device.found(
                    "device-given-twice", "error",
                    "another line gives the same function already (an address without .N gives all), and the machine "
                    "does not start", "one line for the whole card: its address without .0",
                )  # fmt: skip
            seen.append(address)


def _card(card: Setting, guest: Guest, *, q35: bool) -> Iterator[FileFinding]:
    given = card.options
    if not _on(given, "pcie"):
        yield card.found(
            "card-not-on-pcie", "warning",
            "without pcie=1 the guest sees the card behind a bridge of conventional PCI: no PCIe atomics, which ROCm "
            "needs on many cards, and no large window on its memory", "machine: q35, and pcie=1 with the card",
        )  # fmt: skip
    if given.get("rombar", "1").lower() not in _ON:
        shown = bool(given.get("romfile")) or _on(given, "x-vga")
        yield card.found(
            "rom-hidden", "warning" if shown else "note",
            "rombar=0 hides the card's ROM, that of romfile, too; a driver that cannot read it elsewhere stops at "
            "'Unable to locate a BIOS ROM', and firmware shows no picture",
            "leave rombar out; romfile= for a card whose own ROM cannot be read",
        )  # fmt: skip
    if q35 and guest.value("bios") != "ovmf":
        yield card.found(
            "card-without-ovmf", "note", "Proxmox's pages advise UEFI for cards, whose memory is placed above 4 GiB",
            "bios: ovmf, with an efidisk0",
        )  # fmt: skip


def _functions(card: Setting, devices: list[Setting], guest: Guest) -> Iterator[FileFinding]:
    """Yield a card of which only the first function is given: its sound is another, in the same group of the IOMMU."""
    given = {address for device in devices for address in _addresses(device)}
    for address in _addresses(card):
        slot, dot, function = address.rpartition(".")
        if dot and function == "0" and not any(one.startswith(f"{slot}.") and one != address for one in given):
            consumer = _CONSUMER.search(guest.named) or _on(card.options, "x-vga")
            yield card.found(
                "function-not-given", "warning" if consumer else "note",
                "a Radeon's sound is its function .1, which stays with the host: groups of the IOMMU hold both, and a "
                "reset of the card takes both", f"the whole card: {slot}",
            )  # fmt: skip
