"""The host's cards as a CDI specification, and a run spec that asks for cards by their names in one.

CDI (Container Device Interface, github.com/cncf-tags/container-device-interface) is a file on the host that an
engine reads: a name such as amd.com/gpu=0 stands for the nodes that it lists. Docker and podman read the same file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rocmatrix.containers.emit.target import Target
from rocmatrix.containers.runspec import Explanation, RunSpec
from rocmatrix.containers.settings import CdiDevice, Device
from rocmatrix.host.hardware import Hardware
from rocmatrix.host.sysfs import DeviceNode
from rocmatrix.runtime.errors import RocmatrixError

KIND = "amd.com/gpu"  # as AMD's own container toolkit names it
VERSION = "0.5.0"  # the first in which a name may begin with a digit; nothing newer is used
FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
SOURCE = "github.com/cncf-tags/container-device-interface, SPEC.md"


def cdi_file(hardware: Hardware) -> str:
    """Return the specification as JSON text. Raises RM301 or RM302 where there is nothing to name."""
    return json.dumps(specification(hardware), indent=2) + "\n"


def specification(hardware: Hardware) -> dict[str, Any]:
    """Return one device for each card by `Card.index`, and "all".

    Owners and modes are the host's own: left out, CDI gives the nodes to the user of the container. Device numbers
    are left to the engine, which looks at the node: that of /dev/kfd differs between boots.
    """
    kfd, renders = _nodes(hardware)
    devices = [{"name": str(index), "containerEdits": _edits([kfd, node])} for index, node in renders.items()]
    everything = {"name": "all", "containerEdits": _edits([kfd, *renders.values()])}
    return {"cdiVersion": VERSION, "kind": KIND, "devices": [*devices, everything]}


def cdi_rows(hardware: Hardware) -> tuple[Explanation, ...]:
    """Return each name with the nodes that it stands for."""
    kfd, renders = _nodes(hardware)
    return tuple(
        Explanation(
            flag=f"{KIND}={index}",
            value=f"{kfd.path}, {node.path}",
            reason=f"card {index}, owned by the numeric group {node.gid}, which a run asks for with --group-add",
            source=SOURCE,
        )
        for index, node in renders.items()
    )


def by_name(spec: RunSpec, hardware: Hardware) -> RunSpec:
    """Return `spec` with its cards asked for by name; groups stay numbers, for the nodes keep the host's owners."""
    cards = {card.render_path: card for card in hardware.cards}
    settings = []
    for setting in spec.settings:
        if not isinstance(setting, Device) or setting.host not in ("/dev/kfd", *cards):
            settings.append(setting)
        elif card := cards.get(setting.host):
            reason = f"card {card.index} with {setting.host} and /dev/kfd, as the host's CDI file names them"
            settings.append(CdiDevice(value=f"{KIND}={card.index}", reason=reason, source=SOURCE))
    return replace(spec, settings=tuple(settings))


def conflict(file: Path, folders: Iterable[Path] = FOLDERS) -> None:
    """Raise RM411 where a file other than `file` in the engine's folders names devices of the same kind."""
    others = (path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir()))
    for path in others:
        if path.resolve() != file.resolve() and _kind(path) == KIND:
            raise RocmatrixError("RM411", what=f"it names {KIND} devices already", where=str(path))


def _kind(path: Path) -> object:
    import yaml

    if path.suffix not in (".json", ".yaml"):
        return None
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))  # JSON is YAML too
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return content.get("kind") if isinstance(content, dict) else None


def _nodes(hardware: Hardware) -> tuple[DeviceNode, dict[int, DeviceNode]]:
    if not hardware.cards:
        raise RocmatrixError("RM301", what="no card can be named", why=hardware.unusable or hardware.reason or "")
    renders = {card.index: card.render for card in hardware.cards if card.render is not None}
    if hardware.kfd is None or not renders:
        raise RocmatrixError("RM302", what=f"{'a render node' if hardware.kfd else '/dev/kfd'} is not there")
    return hardware.kfd, renders


def _edits(nodes: Iterable[DeviceNode]) -> dict[str, Any]:
    return {
        "deviceNodes": [
            {"path": n.path, "permissions": "rw", "uid": n.uid, "gid": n.gid, "fileMode": n.mode} for n in nodes
        ]
    }


TARGETS: Mapping[str, Target] = {
    "cdi": Target(
        about="a CDI specification of this host's cards",
        text=lambda _, host: cdi_file(host.hardware),
        rows=lambda _, host: cdi_rows(host.hardware),
        require_free=conflict,
        host_alone=True,
    )
}
