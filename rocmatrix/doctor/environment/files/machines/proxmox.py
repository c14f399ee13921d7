"""Guests of Proxmox VE (/etc/pve/lxc/NNN.conf, /etc/pve/qemu-server/NNN.conf) as subjects.

Their forms are those of pve-container and qemu-server (proxmox/pve-container@94f55852, proxmox/qemu-server@e6352be6).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rocmatrix.doctor.environment.dockerfile import read_text
from rocmatrix.doctor.environment.files.machines import guest, lxc, virtual_machine
from rocmatrix.doctor.environment.lint_input import Assignment, Subject

# what the one kind has and the other has not, and no unit or env file
_CONTAINER = re.compile(r"^(?:lxc\.[\w.]+\s*[:=]|rootfs:|unprivileged:|dev\d+:\s*/dev/)", re.MULTILINE)
_MACHINE = re.compile(
    r"^(?:hostpci\d+|scsihw|smbios1|vmgenid|efidisk0|bootdisk|(?:virtio|scsi|sata|ide)\d+):", re.MULTILINE
)


def is_guest(text: str) -> bool:
    """Return whether a file's text is that of a container or a virtual machine of Proxmox VE."""
    return bool(_CONTAINER.search(text) or _MACHINE.search(text))


def of_guest(path: Path) -> tuple[Subject, ...]:
    """Return a guest with what is wrong for an AMD card. Raises RM310 where it cannot be read."""
    text = read_text(path)
    found = guest.read(text, path)
    notes = lxc.findings(found) if _CONTAINER.search(text) else virtual_machine.findings(found)
    return (Subject(name=str(path), variables=tuple(_variables(found)), notes=tuple(notes)),)


def _variables(found: guest.Guest) -> Iterator[Assignment]:
    for key in ("lxc.environment", "lxc.environment.runtime"):
        for row in found.of(key):
            name, sign, value = row.value.partition("=")
            if sign:
                yield Assignment(name=name.strip(), value=value.strip(), where=row.where)
