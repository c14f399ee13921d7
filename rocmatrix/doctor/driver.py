"""D1xx: the driver, and whether this user can open its device nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rocmatrix.containers.device_selection import is_listed
from rocmatrix.containers.least_privilege import NOGROUP
from rocmatrix.doctor.catalog import Finding, Status, check
from rocmatrix.doctor.host import NO_CARD, Host, User
from rocmatrix.doctor.knowledge import HostKnowledge, is_within, plain_version
from rocmatrix.host.hardware import Hardware
from rocmatrix.host.pci_device import PciDevice
from rocmatrix.host.sysfs import DeviceNode
from rocmatrix.matrix.rule import Rule
from rocmatrix.matrix.statement import within

MOST_SHOWN = 4
UDEV_FIX = (
    'printf \'SUBSYSTEM=="kfd", GROUP="render", MODE="0660"\\nSUBSYSTEM=="drm", KERNEL=="renderD*", GROUP="render", '
    'MODE="0660"\\n\' | sudo tee /etc/udev/rules.d/70-amdgpu.rules && sudo udevadm control --reload && '
    "sudo udevadm trigger"
)


@check(
    "D101",
    title="The amdgpu driver is loaded",
    why="every card is reached through it; a container brings libraries and no driver",
    source="ROCm/TheRock:dockerfiles (no kernel driver inside)",
)
def loaded(host: Host) -> Finding:
    """Check that amdgpu is loaded (D101). Not applicable without a card, unless a cell for one was named."""
    machine = host.hardware
    if machine.wsl2:
        seen = "this is WSL2: the driver is Windows', reached through /dev/dxg, and there is no /dev/kfd"
        return Finding(code="D101", status="note", seen=seen)
    if host.absent:
        needed = host.cell is not None and host.cell.architecture is not None
        seen = f"{NO_CARD}, so CPU cells run here, and images for other machines can be built"
        fix = "./invokew train --gpu cpu" if needed else None
        return Finding(code="D101", status="error" if needed else "not applicable", seen=seen, fix=fix)
    if not machine.cards and (foreign := _foreign(host)):
        return foreign
    if machine.driver is not None:
        seen = f"amdgpu {machine.driver.version}, {'AMD' if machine.driver.origin == 'dkms' else 'the kernel'}'s own"
        return Finding(code="D101", status="ok", seen=seen)
    if machine.cards or host.served or (machine.withheld and not host.amd_devices):
        seen = "cards are driven, but /sys/module is not to be seen here, so no version is known"
        return Finding(code="D101", status="unknown", seen=seen)
    seen = f"{', '.join(host.amd_devices) or 'a card'} is there, and the driver is not loaded"
    return Finding(code="D101", status="error", seen=seen, fix=host.barred or "sudo modprobe amdgpu")


def _foreign(host: Host) -> Finding | None:
    """Return that another driver than amdgpu has the card, None where it is not so."""
    taken = [device for device in host.hardware.devices if device.taken]
    if not taken:
        return None
    seen = "; ".join(f"{device.summary}: its driver is {device.driver}" for device in taken)
    if all(device.driver == "radeon" for device in taken):
        needed = host.cell is not None and host.cell.architecture is not None
        seen = f"{seen}, which serves chips older than any ROCm release knows; CPU cells run here"
        fix = "./invokew train --gpu cpu" if needed else None
        return Finding(code="D101", status="error" if needed else "note", seen=seen, fix=fix)
    return Finding(code="D101", status="error", seen=seen, fix=_released(taken[0]))


def _released(device: PciDevice) -> str:
    """Return how a device of another driver's is given to amdgpu."""
    place = f"/sys/bus/pci/drivers/{device.driver}/unbind"
    return f"where a run shall have it: echo {device.address} | sudo tee {place}, then sudo modprobe amdgpu"


@check(
    "D102",
    title="The driver serves the cell's ROCm",
    why="AMD tests a driver with the ROCm releases near its own; farther apart, calls fail or are missing",
    source="rocm.docs.amd.com, user and kernel-space support matrix; matrix/hosts.yaml",
)
def window(host: Host, known: HostKnowledge) -> Finding:
    """Check the driver against the cell's ROCm (D102). AMD states a range for its own driver only; see D103."""
    driver, cell = host.hardware.driver, host.cell
    if driver is None or cell is None or cell.release.rocm is None:
        seen = "needs a loaded driver and --cell with a ROCm cell"
        return Finding(code="D102", status="not applicable", seen=seen)
    rocm = cell.release.rocm
    if driver.origin == "kernel":
        seen = f"the driver is the kernel's ({driver.version}); AMD's windows are for its own driver only"
        return Finding(code="D102", status="note", seen=seen)
    entry = next((row for row in known.drivers if is_within(driver.version, row.module)), None)
    if entry is None:
        seen = f"amdgpu {driver.version} is in no recorded window, so nothing is known of it with ROCm {rocm}"
        return Finding(code="D102", status="unknown", seen=seen, fix=f"see {known.drivers[-1].evidence.sources[-1]}")
    seen = f"amdgpu {driver.version} ({entry.package}) serves ROCm {entry.user_space}; the cell has {rocm}"
    if within(rocm, entry.user_space):
        return Finding(code="D102", status="ok", seen=f"{seen} ({entry.evidence.confidence})")
    if report := _reported(host, str(driver.version)):
        seen = f"{seen}; that is outside what AMD tests, and rule {report.id} states: {report.reason}"
        return Finding(code="D102", status="note", seen=f"{seen} ({report.evidence.summary})")
    return Finding(
        code="D102",
        status="warning",
        seen=f"{seen} ({entry.evidence.summary})",
        fix="./invokew cells, and take a cell whose ROCm is inside; or install the driver of that ROCm",
    )


def _reported(host: Host, version: str) -> Rule | None:
    """Return the rule by which the cell works under this driver, whatever the window."""
    rules = host.cell.rules if host.cell else ()
    works = (rule for rule in rules if rule.decides and rule.verdict == "works" and rule.drivers is not None)
    return next((rule for rule in works if is_within(version, str(rule.drivers))), None)


@check(
    "D103",
    title="The kernel is not known to be bad for the card",
    why="some kernels hang or lose a card under compute, although a desktop runs on them",
    source="matrix/hosts.yaml",
)
def kernel(host: Host, known: HostKnowledge) -> list[Finding]:
    """Return one finding for each known fault of the kernel, or one that none is known (D103)."""
    machine = host.hardware
    if not machine.cards:
        return [Finding(code="D103", status="not applicable", seen="no card to judge a kernel by")]
    if plain_version(machine.kernel) is None:
        return [Finding(code="D103", status="unknown", seen="the kernel's release is not to be seen here")]
    rocm = host.cell.release.rocm if host.cell else None
    found = []
    for caution in known.cautions:
        release = machine.driver.version if machine.driver and machine.driver.origin == "dkms" else machine.kernel
        foreign = machine.driver is not None and machine.driver.origin != caution.origin
        exempt = caution.unless is not None and caution.unless in (release or "")
        named = set(machine.architectures) & set(caution.when.architectures or machine.architectures)
        fits = caution.when.rocm is None or rocm is None or within(rocm, caution.when.rocm)
        if named and fits and not foreign and not exempt and is_within(release, caution.kernel):
            limit = f" (with ROCm {caution.when.rocm})" if caution.when.rocm and rocm is None else ""
            seen = f"{release} with {', '.join(sorted(named))}{limit}: {caution.why} ({caution.evidence.summary})"
            found.append(Finding(code="D103", status="warning", seen=seen, fix=caution.fix))
    return found or [Finding(code="D103", status="ok", seen=f"nothing is known against {machine.kernel}")]


@check(
    "D104",
    title="Every AMD card is in the KFD topology",
    why="ROCm finds cards there and nowhere else; the driver leaves out what it cannot compute on",
    source="Linux, drivers/gpu/drm/amd/amdkfd/kfd_device.c",
)
def listed(host: Host) -> Finding:
    """Check that every AMD card is in the KFD topology (D104)."""
    machine = host.hardware
    if host.absent or machine.wsl2:
        return Finding(code="D104", status="not applicable", seen=host.no_card)
    known = {card.pci_address for card in machine.cards}
    missing = [address for address in host.amd_devices if address not in known and f"{address[:-1]}0" not in known]
    if machine.cards and not missing:
        return Finding(code="D104", status="ok", seen=f"{len(machine.physical_cards)} card(s): {inventory(machine)}")
    if missing and machine.hidden_nodes >= len(missing):
        return Finding(code="D104", status="note", seen=f"{', '.join(missing)}: hidden by the container, see D105")
    taken = {device.address: device for device in machine.devices if device.taken and device.address in missing}
    known_as = {device.address: device.summary for device in machine.devices}
    named = [
        f"{known_as.get(place, place)}{f' (its driver is {taken[place].driver})' if place in taken else ''}"
        for place in missing
    ]
    seen = f"{', '.join(named)} is not in it" if missing else host.no_card
    status: Status = "warning" if machine.cards else "error"  # a run goes on the cards that are listed
    log = host.barred or "sudo dmesg | grep -i -e kfd -e amdgpu"
    given_back = [device for device in taken.values() if device.driver != "radeon"]  # its chips are no ROCm's
    fix = _released(given_back[0]) if len(given_back) == len(missing) > 0 else log
    if machine.withheld and not missing:
        fix = "give this container the host's /sys, too: --volume=/sys:/sys:ro (docker, podman)"
    return Finding(code="D104", status=status, seen=seen, fix=fix)


def inventory(machine: Hardware) -> str:
    """Return the cards by kind: "2 x gfx1100, 1 x gfx1036 (integrated)"."""
    kinds = Counter(
        f"{c.gfx or 'not named by its old kernel'}{' (integrated)' * c.integrated}"
        f"{f' {c.adapter.product}' if c.adapter and c.adapter.product else ''}"
        for c in machine.cards
    )
    return ", ".join(f"{count} x {kind}" for kind, count in kinds.items())


def shortened(names: Sequence[str]) -> str:
    """Return a list as text, with the number of those that are too many to read."""
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(names[:MOST_SHOWN]) + more


@check(
    "D105",
    title="No card is hidden by a container",
    why="the kernel answers EPERM for a card whose render node was not given to this container",
    source="Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c (node_show)",
)
def hidden(host: Host) -> Finding:
    """Check that no card is hidden by a container (D105)."""
    machine, count = host.hardware, host.hardware.hidden_nodes
    if not (count or machine.cards or machine.processors):
        seen = host.no_card if host.absent else "there is no KFD topology that could withhold one"
        return Finding(code="D105", status="not applicable" if host.absent else "unknown", seen=seen)
    if not count:
        return Finding(code="D105", status="ok", seen="the kernel withholds no card")
    seen = f"{count} card(s) are hidden by the container"
    status: Status = "note" if machine.cards else "error"
    return Finding(code="D105", status=status, seen=seen, fix="give the container their /dev/dri/renderD nodes")


@check(
    "D110",
    title="/dev/kfd can be opened",
    why="every compute queue is made through it",
    source="rocm.docs.amd.com, install-on-linux, how-to/docker",
)
def interface(host: Host) -> Finding:
    """Check that this user can open /dev/kfd (D110)."""
    machine = host.hardware
    if not machine.cards:
        return Finding(code="D110", status="not applicable", seen=host.no_card)
    if machine.kfd is None and not host.devices:
        return Finding(code="D110", status="unknown", seen="the tree holds no /dev")
    if machine.kfd is None:
        # the topology lists cards, so that the driver works: a container was given their render nodes alone
        given = "give it to this container, too: --device=/dev/kfd (docker, podman), dev0: /dev/kfd,gid=N (Proxmox)"
        fix = given if machine.driver is not None else "sudo modprobe amdgpu"
        return Finding(code="D110", status="error", seen="/dev/kfd is not there", fix=fix)
    return _opens(host, "D110", [machine.kfd])


@check(
    "D111",
    title="The render nodes can be opened",
    why="a card's memory is mapped through its own node; KFD without it ends as HSA error 0x1008",
    source="ROCm/legacy-rocm-build#3144, #2860",
)
def render_nodes(host: Host) -> Finding:
    """Check that this user can open the render nodes (D111)."""
    machine = host.hardware
    if not machine.cards:
        return Finding(code="D111", status="not applicable", seen=host.no_card)
    missing = [card.render_path or f"the node of card {card.index}" for card in machine.cards if card.render is None]
    if missing and not host.devices:
        return Finding(code="D111", status="unknown", seen="the tree holds no /dev")
    if missing:
        seen = f"{shortened(missing)} is not there"
        return Finding(code="D111", status="error", seen=seen, fix="ls -ln /dev/dri, and pass what is missing")
    return _opens(host, "D111", [card.render for card in machine.cards if card.render is not None])


def _opens(host: Host, code: str, nodes: list[DeviceNode]) -> Finding:
    owners = shortened([f"{node.path} {node.uid}:{node.gid} {node.mode:04o}" for node in nodes])
    if host.user is None:
        return Finding(code=code, status="unknown", seen=f"{owners}; whose session it was is not recorded")
    user = host.user
    bound = [node for node in nodes if _is_bound(node, user) and not is_listed(node, user.uid)]
    closed = [node for node in bound if not node.opens_for(uid=user.uid, groups=user.groups)]
    if not closed:
        return Finding(code=code, status="ok", seen=f"user {user.uid} opens {owners}")
    seen = f"user {user.uid} cannot open {', '.join(f'{n.path} ({n.uid}:{n.gid} {n.mode:04o})' for n in closed)}"
    return Finding(code=code, status="error", seen=seen, fix=_opened(closed[0]))


def _is_bound(node: DeviceNode, user: User) -> bool:
    """Return whether a node's mode holds for a user: for root, too, where its user namespace has no such owners."""
    return user.uid != 0 or node.uid == node.gid == NOGROUP


def _opened(node: DeviceNode) -> str:
    """Return how this user comes to open a node that is closed to it."""
    if node.gid == NOGROUP:  # an owner that the container's user namespace has no number for
        given = f"a further devM: {node.path},gid=N in its configuration (Proxmox), N the number of render in here"
        return f"its owners have no number in this container; on its host: {given}; Podman: --group-add keep-groups"
    return f'sudo usermod -aG "$(getent group {node.gid} | cut -d: -f1)" "$(id -un)", then log in again'


@check(
    "D112",
    title="The nodes' groups are known by number",
    why="a group's name means another number, or nothing, inside an image, so runs are given the numbers",
    source="ROCm/ROCm-docker#90, #116",
)
def groups(host: Host) -> Finding:
    """Check that the groups of the device nodes have names here, and report their numbers (D112)."""
    machine = host.hardware
    if not machine.nodes:
        return Finding(code="D112", status="not applicable", seen="there is no node to have an owner")
    # no group can be lent for a node that is root's own, so only root gets in
    closed = [node for node in machine.nodes if node.gid == 0 and not node.open_to_all]
    if closed:
        seen = f"{shortened([node.path for node in closed])} belongs to root's group, which no run is given"
        return Finding(code="D112", status="warning", seen=seen, fix=UDEV_FIX)
    names = ", ".join(map(str, machine.groups))
    seen = f"runs are given --group-add {names}" if names else "no group is needed: every node is open to all"
    return Finding(code="D112", status="ok", seen=seen)
