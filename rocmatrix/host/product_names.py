"""Product names of cards: the card's own name, else that of the host's tables for its PCI ids.

Sources: Linux `drivers/gpu/drm/amd/amdgpu/amdgpu_fru_eeprom.c` (`product_name`, of server cards alone); libdrm's
`data/amdgpu.ids` (device, revision, name) and pciutils' `pci.ids`, both as a distribution installs them. A name is for
people: several cards share one ("MI60 / MI50"), and an APU may have none of its own.
"""

from __future__ import annotations

import re

from rocmatrix.host.sysfs import Files

REVISION_TABLES = ("usr/share/libdrm/amdgpu.ids", "opt/amdgpu/share/libdrm/amdgpu.ids")
DEVICE_TABLES = ("usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids")
LONGEST = 80


def product(files: Files, folder: str) -> str | None:
    """Return the name of the card whose PCI attributes are in `folder`, None where nothing names it.

    Args:
        files: the machine's files; the tables are read below the same root.
        folder: folder of the PCI device, from the root.
    """
    number, revision = files.word(f"{folder}/device") or "", files.word(f"{folder}/revision") or "0x00"
    own = files.word(f"{folder}/product_name")
    found = own or _by_revision(files, number, revision) or _by_device(files, number)
    return found if found and len(found) <= LONGEST and found.isprintable() else None


def _by_revision(files: Files, number: str, revision: str) -> str | None:
    if not (_hexadecimal(number, 4) and _hexadecimal(revision, 2)):
        return None
    row = re.compile(rf"^{number[2:]},\s*{revision[2:]},\s*(\S.*)$", re.IGNORECASE | re.MULTILINE)
    return _first(files, REVISION_TABLES, row)


def _by_device(files: Files, number: str) -> str | None:
    if not _hexadecimal(number, 4):
        return None
    # in the table of 0x1002: a tab, the device, two spaces, "Navi 31 [Radeon RX 7900 XT/7900 XTX]"
    row = re.compile(rf"^1002 [^\n]*\n(?:[\t#][^\n]*\n|\n)*?\t{number[2:]}  ([^\n]+)$", re.IGNORECASE | re.MULTILINE)
    return _first(files, DEVICE_TABLES, row)


def _hexadecimal(text: str, digits: int) -> bool:
    return re.fullmatch(rf"0x[0-9a-fA-F]{{{digits}}}", text) is not None


def _first(files: Files, tables: tuple[str, ...], row: re.Pattern[str]) -> str | None:
    found = (row.search(files.text(path) or "") for path in tables)
    return next((match[1].strip() for match in found if match), None)
