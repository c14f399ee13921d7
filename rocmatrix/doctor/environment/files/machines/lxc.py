"""What a container of Proxmox VE that is given an AMD card lacks: nodes, permission to open them, groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rocmatrix.doctor.environment.files import settings
from rocmatrix.doctor.environment.files.machines.guest import Guest, Setting
from rocmatrix.doctor.environment.files.machines.idmap import findings as idmap_findings
from rocmatrix.doctor.environment.files.machines.idmap import maps_groups
from rocmatrix.doctor.environment.lint_input import FileFinding

_COMPUTES = re.compile(r"rocm|pytorch|\btorch|vllm|sglang|comfyui|unsloth|axolotl|tensorflow")
_DRM = 226  # the number of /dev/dri's nodes (Linux, include/uapi/linux/major.h has no other)
_RULE = re.compile(r"(?P<kind>[ac])(?:\s+(?P<major>\d+|\*):(?P<minor>\d+|\*))?(?:\s+(?P<rights>[rwm]+))?")
_NODE = re.compile(r"/dev/(?:kfd$|dri(?:/|$))")


@dataclass(frozen=True, kw_only=True)
class _Node:
    """A node that is given: its path on the host, the line, and whether Proxmox makes it (devN) or a mount does."""

    path: str
    setting: Setting
    made: bool

    @property
    def is_kfd(self) -> bool:
        return self.path == "/dev/kfd"

    @property
    def renders(self) -> bool:
        """Whether ROCm finds a card's render node by it."""
        return self.path.rstrip("/") == "/dev/dri" or "render" in self.path


def findings(guest: Guest) -> Iterator[FileFinding]:
    """Yield what is wrong with the nodes of a card, in a container that is given one."""
    nodes = [*_made(guest), *_mounted(guest)]
    for device in guest.of("dev#"):
        yield from _form(device)
    yield from idmap_findings(guest)
    if not nodes:
        return
    yield from _missing(guest, nodes)
    yield from _older_keys(guest)
    for node in nodes:
        yield from _made_wrong(node) if node.made else _mounted_wrong(node, guest)
    yield from _owners(guest, nodes)


def _made(guest: Guest) -> Iterator[_Node]:
    for device in guest.of("dev#"):
        path = device.first or device.options.get("path", "")
        if _NODE.match(path):
            yield _Node(path=path, setting=device, made=True)


def _mounted(guest: Guest) -> Iterator[_Node]:
    for mount in guest.of("lxc.mount.entry"):
        source = (mount.value.split() or [""])[0]
        if _NODE.match(source):
            yield _Node(path=source, setting=mount, made=False)


def _form(device: Setting) -> Iterator[FileFinding]:
    path = device.first or device.options.get("path", "")
    yield from settings.of_node(path, device.where)
    if path.rstrip("/") == "/dev/dri":
        yield device.found(
            "device-is-a-folder", "error", "devN takes a node, /dev/dri is a folder, and the container does not start",
            "dev0: /dev/dri/renderD128,gid=..., one line for each node",
        )  # fmt: skip


def _missing(guest: Guest, nodes: list[_Node]) -> Iterator[FileFinding]:
    kfd = next((node for node in nodes if node.is_kfd), None)
    if kfd is None and _COMPUTES.search(guest.named):
        yield nodes[0].setting.found(
            "kfd-not-given", "warning",
            "ROCm computes through /dev/kfd; with /dev/dri alone there are Vulkan and video, and ROCm finds no card",
            "devN: /dev/kfd,gid=<render in the container>",
        )  # fmt: skip
    if kfd is not None and not any(node.renders for node in nodes):
        yield kfd.setting.found(
            "dri-not-given", "error", "ROCm opens each card's render node, too; with /dev/kfd alone it finds no card",
            "devN: /dev/dri/renderD128,gid=<render in the container>",
        )  # fmt: skip


def _older_keys(guest: Guest) -> Iterator[FileFinding]:
    for row in guest.of("lxc.cgroup.devices.allow"):
        yield row.found(
            "cgroup-of-version-1", "warning", "containers of Proxmox VE 7 and newer have cgroups of version 2",
            "lxc.cgroup2.devices.allow, with the same value",
        )  # fmt: skip


def _made_wrong(node: _Node) -> Iterator[FileFinding]:
    given = node.setting.options
    if given.get("deny-write", "0") not in ("0", "off", "no"):
        yield node.setting.found(
            "node-read-only", "error", "ROCm and Mesa open the node to read and write; deny-write closes it",
            "leave deny-write out",
        )  # fmt: skip
    if "gid" not in given and "uid" not in given and not given.get("mode", "").endswith("6"):
        yield node.setting.found(
            "node-of-root", "note", "without gid the node belongs to the container's root alone, with mode 0660",
            "gid=<number of render in the container>, where another user than root computes",
        )  # fmt: skip


def _mounted_wrong(node: _Node, guest: Guest) -> Iterator[FileFinding]:
    yield from _mount_form(node)
    allowed = [row for row in guest.of("lxc.cgroup2.devices.allow") if _allows(row.value, node)]
    by_device = any(node.path == (one.first or one.options.get("path")) for one in guest.of("dev#"))
    if not allowed and not by_device:
        number = "226:*" if not node.is_kfd else "<number of ls -l /dev/kfd>:0"
        yield node.setting.found(
            "node-not-allowed", "error",
            "no line allows the container this device, and opening it ends with 'Operation not permitted'",
            f"lxc.cgroup2.devices.allow: c {number} rwm, or devN: {node.path} in place of the mount, which allows it",
        )  # fmt: skip
    if node.is_kfd and not by_device and any(re.match(r"c\s+\d+:", row.value) for row in allowed):
        yield allowed[0].found(
            "kfd-number-moves", "note",
            "the kernel gives /dev/kfd any free number when it starts, and another after a new module or kernel",
            "devN: /dev/kfd,gid=... (Proxmox VE 8.2 and newer), which reads the number at each start",
        )  # fmt: skip


def _mount_form(node: _Node) -> Iterator[FileFinding]:
    words = node.setting.value.split()
    if len(words) > 1 and words[1].startswith("/"):
        yield node.setting.found(
            "mount-target-absolute", "error", "the place of a mount is read from the container's root; LXC leaves out "
            "one that begins with a slash", f"{words[0]} {words[1].lstrip('/')} ...",
        )  # fmt: skip
    options = words[3].split(",") if len(words) > 3 else []
    folder = node.path.rstrip("/") == "/dev/dri"
    if ("create=dir" if folder else "create=file") not in options:
        yield node.setting.found(
            "mount-of-another-kind", "error", "a container's /dev is empty at its start: a node needs create=file, the "
            "folder /dev/dri create=dir, or nothing is mounted",
            f"none bind,optional,create={'dir' if folder else 'file'}",
        )  # fmt: skip


def _allows(rule: str, node: _Node) -> bool:
    """Return whether a line of lxc.cgroup2.devices.allow covers a node."""
    match = _RULE.match(rule)
    if match is None or (match["kind"] == "c" and match["major"] is None):
        return False
    if match["kind"] == "a" or match["major"] == "*":
        return True
    major = int(match["major"])
    if node.is_kfd:
        # numbers that the kernel hands out by itself (Linux, fs/char_dev.c, find_dynamic_major)
        return 234 <= major <= 254 or 384 <= major <= 511
    number = re.search(r"(\d+)$", node.path)
    minor = number[1] if number else None  # of a folder and of by-path any may be right
    return major == _DRM and (match["minor"] == "*" or minor is None or match["minor"] == minor)


def _owners(guest: Guest, nodes: list[_Node]) -> Iterator[FileFinding]:
    mounted = next((node for node in nodes if not node.made), None)
    unprivileged = guest.value("unprivileged") == "1"
    opened = "lxc.hook" in "".join(one.key for one in guest.settings) or re.search(r"chmod|0?666", guest.comments)
    if mounted and unprivileged and not maps_groups(guest) and not opened:
        yield mounted.setting.found(
            "nodes-without-owner", "warning",
            "in an unprivileged container a mounted node belongs to none of its users and groups: it opens only if the "
            "host gives all the right to it (0666)",
            f"devN: {mounted.path},gid=<render in the container> in place of the mount, or lxc.idmap for the group",
        )  # fmt: skip
    yield from _groups(nodes)


def _groups(nodes: list[_Node]) -> Iterator[FileFinding]:
    kfd = next((node for node in nodes if node.is_kfd and node.made), None)
    groups = {node.setting.options["gid"] for node in nodes if "render" in node.path and "gid" in node.setting.options}
    if kfd is not None and groups and kfd.setting.options.get("gid", next(iter(groups))) not in groups:
        yield kfd.setting.found(
            "node-groups-differ", "note",
            f"the render nodes are of group {', '.join(sorted(groups))}: a user needs both groups "
            "(community-scripts/ProxmoxVE#15401)", f"gid={min(groups)}",
        )  # fmt: skip
