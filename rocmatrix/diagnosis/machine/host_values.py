"""Values of a host by the names that comparisons give them, so that the rules on logs judge the host as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rocmatrix.doctor.host import Host

_OTHERS_MAY, _GROUP_MAY = 0o006, 0o060  # bits of a node's mode: reading and writing
_VARIABLES = {
    "override_gfx": "HSA_OVERRIDE_GFX_VERSION",
    "hip_index": "HIP_VISIBLE_DEVICES",
    "rocr_count": "ROCR_VISIBLE_DEVICES",
}


def of(host: Host) -> dict[str, tuple[str, ...]]:
    """Return what is known of a host; a value that is not known is left out."""
    return {name: texts for name, texts in _rows(host) if any(texts)}


def of_inventory(described: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return what an inventory as plain data, of `./invokew doctor --json`, has of them.

    Args:
        described: the inventory.
    """
    names = tuple(dict.fromkeys(name for card in described.get("cards", ()) if (name := card.get("architecture"))))
    kernel = str(described.get("kernel") or "")
    return {name: texts for name, texts in (("running_kernel", (kernel,)), ("card_gfx", names)) if any(texts)}


def _rows(host: Host) -> Iterator[tuple[str, tuple[str, ...]]]:
    machine = host.hardware
    yield "running_kernel", (machine.kernel or "",)
    yield "card_gfx", tuple(machine.architectures)
    if machine.kfd is not None and not machine.kfd.mode & _OTHERS_MAY and machine.kfd.mode & _GROUP_MAY:
        yield "kfd_gid", (str(machine.kfd.gid),)
    if host.user is not None:
        numbers = " ".join(map(str, sorted(host.user.groups)))
        yield "user_gids", (numbers,)
        yield "user_groups", (f"{numbers} root" if host.user.uid == 0 else numbers,)
    if host.shared_memory_bytes is not None:
        yield "shm_size", (str(host.shared_memory_bytes),)
    if (host.memlock or "").isdigit():
        yield "locked_memory", (str(host.memlock),)
    for name, variable in _VARIABLES.items():
        yield name, ((host.environment or {}).get(variable, ""),)
