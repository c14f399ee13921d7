"""Selection of a host's cards for a run, and a check that their device nodes can be opened."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence

from rocmatrix.host.hardware import Card, Hardware, groups_of
from rocmatrix.host.sysfs import DeviceNode
from rocmatrix.matrix.matrix import Cell
from rocmatrix.runtime.errors import RocmatrixError

ACL_USER, ACL_MASK = 0x02, 0x10  # tags of entries: linux/posix_acl.h
OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"  # begins the variables by which a card is taken for another
MOST_CARDS = 1024  # of a host, partitions counted
_RANGE = re.compile(r"(?P<first>\d{1,4})(?:-(?P<last>\d{1,4}))?", re.ASCII)
VISIBILITY = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
# Of these, what a HIP program reads: GPU_DEVICE_ORDINAL is OpenCL's alone (ROCm/clr: rocclr/device/rocm/rocdevice.cpp,
# where amd::IS_HIP chooses between them), whatever HIP's table of variables says.
READ_BY_HIP = VISIBILITY[:3]


def choose_cards(
    cell: Cell, hardware: Hardware, indices: Sequence[int] | None = None, *, environment: Collection[str] = ()
) -> tuple[Card, ...]:
    """Return the cards that `cell` runs on, in index order; none for a CPU cell.

    By default those of the cell's architecture; `indices` names others by `Card.index`, of which the cell's release
    must hold code, unless a variable has them taken for another. Raises RM301 or RM303.

    Args:
        indices: `Card.index` of each card to use; None for all of the cell's architecture.
        environment: names of the variables that the run is given.
    """
    if cell.architecture is None:
        _refuse_cards_of_cpu(cell, hardware, indices or ())
        return ()
    if not hardware.cards:
        why = hardware.unusable or hardware.reason or ""
        raise RocmatrixError("RM301", what=f"{cell.name} needs an AMD card", why=why)
    if not indices:
        return _by_architecture(cell, cell.architecture, hardware)
    chosen = _by_index(hardware, indices)
    if not any(name.startswith(OVERRIDE) for name in environment):
        _require_code(cell, hardware, chosen)
    return chosen


def _refuse_cards_of_cpu(cell: Cell, hardware: Hardware, indices: Sequence[int]) -> None:
    """Raise RM301 or RM404 where cards are named for a cell that uses none: they would be left out unseen."""
    if not indices:
        return
    named = f"--cards {','.join(map(str, indices))} names cards, and {cell.name} uses none"
    if not hardware.cards:
        raise RocmatrixError("RM301", what=named, why=hardware.unusable or hardware.reason or "")
    advice = "Leave --cards out; or name a cell of the card with --gpu or --cell."
    raise RocmatrixError("RM404", what=named, where=listing(hardware.cards), next=advice)


def card_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in a list such as "0,1" or "0-3,6"; none for an empty one, or for "all". Raises RM404."""
    words = [word.strip() for word in text.split(",")] if text.strip().lower() not in ("", "all") else []
    return tuple(number for word in words for number in _numbers(word, text))


def _numbers(word: str, text: str) -> Iterable[int]:
    found = _RANGE.fullmatch(word)
    first, last = (int(found["first"]), int(found["last"] or found["first"])) if found else (1, 0)
    if not first <= last <= MOST_CARDS:
        raise RocmatrixError(
            "RM404",
            what=f"--cards takes numbers such as 0,1 or 0-3, not {text!r}",
            next="`./invokew topology` lists the numbers.",
        )
    return range(first, last + 1)


def cards_of_shell(hardware: Hardware, environment: Mapping[str, str]) -> tuple[tuple[int, ...], str]:
    """Return the numbers of the cards that a shell's variables leave a run, and the variables as text.

    Both are empty where none is set. ROCr's filters first, by numbers or UUIDs; HIP's counts what is left, and
    CUDA_VISIBLE_DEVICES is read where HIP_VISIBLE_DEVICES is empty (ROCm/clr: rocclr/device/rocm/rocdevice.cpp). A
    container is given no variable of a shell, so that its cards have to be chosen by the values of the variables.

    Raises:
        RocmatrixError: RM303 for a value that names no card of this machine.
    """
    rocr, hip = VISIBILITY[0], next((name for name in VISIBILITY[1:3] if environment.get(name)), "")
    used = [name for name in (rocr, hip) if name and environment.get(name)]
    cards, shown = list(hardware.cards), " ".join(f"{name}={environment[name]}" for name in used)
    for name in used:
        places = {str(place): card for place, card in enumerate(cards)}
        known = {**{str(card.uuid): card for card in reversed(cards) if card.uuid}, **places}
        words = [word.strip() for word in environment[name].split(",")]
        unknown = [word for word in words if word not in known]
        if unknown:
            what = f"{shown} of this shell: {unknown[0]!r} is no card here"
            advice = f"Unset {name}, or choose with --cards; for the CPU: --gpu cpu."
            raise RocmatrixError("RM303", what=what, where=listing(hardware.cards), next=advice)
        cards = [known[word] for word in dict.fromkeys(words)]
    return (tuple(sorted({card.index for card in cards})), shown) if used else ((), "")


def _by_index(hardware: Hardware, indices: Sequence[int]) -> tuple[Card, ...]:
    known = {card.index: card for card in hardware.cards}
    for index in indices:
        if index not in known:
            raise RocmatrixError("RM303", what=f"there is no card {index}", where=listing(hardware.cards))
    return tuple(known[index] for index in sorted(set(indices)))


def _require_code(cell: Cell, hardware: Hardware, chosen: Sequence[Card]) -> None:
    """Raise RM303 for a card that the cell's release holds no code for, such as the processor's own."""
    held = cell.release.architectures
    lacking = [card for card in chosen if held and card.gfx not in (None, cell.architecture, *held)]
    if lacking:
        fitting = ",".join(str(card.index) for card in hardware.cards if card.gfx == cell.architecture)
        raise RocmatrixError(
            "RM303",
            what=f"{cell.name} holds no code for card {lacking[0].index}, which is {lacking[0].gfx}",
            where=listing(hardware.cards),
            **({"next": f"Name others: --cards {fitting}"} if fitting else {}),
        )


def _by_architecture(cell: Cell, architecture: str, hardware: Hardware) -> tuple[Card, ...]:
    fitting = tuple(card for card in hardware.cards if card.gfx == architecture)
    # a kernel too old for gfx_target_version leaves the card unnamed, and only its owner can know it
    unnamed = tuple(card for card in hardware.cards if card.gfx is None and not card.integrated)
    if not (fitting or unnamed):
        raise RocmatrixError(
            "RM303",
            what=f"{cell.name} is built for {architecture}, and no card here is one",
            where=listing(hardware.cards),
        )
    return fitting or unnamed


def listing(cards: Sequence[Card]) -> str:
    """Return the cards as text: "card 0 is gfx1100, card 1 is gfx1036 (integrated)"."""
    kinds = (f"{card.gfx or 'not named by its old kernel'}{' (integrated)' * card.integrated}" for card in cards)
    return ", ".join(f"card {card.index} is {kind}" for card, kind in zip(cards, kinds, strict=True))


def handed(hardware: Hardware, chosen: Sequence[Card], *, all_shown: bool) -> tuple[Card, ...]:
    """Return the cards whose nodes a container is given: the chosen ones, or all that are there.

    A rootless engine has no device rules, so that the kernel shows its containers every card of the host. ROCr ends
    with 0x1008 where one that it is shown has no node (ROCm/legacy-rocm-build#3144, #2860); the variable chooses then.

    Args:
        hardware: this machine's.
        chosen: cards of the run; empty for none.
        all_shown: the engine hides no card that it does not pass.
    """
    given = [card for card in hardware.cards if card in chosen or (all_shown and card.render is not None)]
    return tuple(given) if chosen else ()


def visible_devices(hardware: Hardware, chosen: Sequence[Card], *, all_shown: bool = False) -> str | None:
    """Return ROCR_VISIBLE_DEVICES for `chosen`, None where they are all there are or none is chosen.

    A UUID means the same card whether or not the engine hides the others. Where one is missing or shared (the
    partitions of a card), positions are counted among the chosen cards alone: hidden ones get no number.

    Args:
        hardware: this machine's.
        chosen: cards of the run.
        all_shown: nothing hides the others, so that a card without a UUID of its own keeps its number among all.
    """
    if not chosen or len(chosen) == len(hardware.cards):
        return None
    known = [card.uuid for card in hardware.cards]
    names = [card.uuid for card in chosen if card.uuid is not None and known.count(card.uuid) == 1]
    if len(names) < len(chosen):
        names = [str(card.index if all_shown else position) for position, card in enumerate(chosen)]
    return ",".join(names)


def visible_natively(
    cell: Cell, hardware: Hardware, indices: Sequence[int], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return what hides from a native run the cards that it is not to use, as a container hides them.

    Those are cards not named, else those of another architecture than the cell's, else a processor's own graphics. A
    card that ROCm does not start with keeps all others from starting (ROCm/rocm-systems#6883). Nothing where none is
    hidden, or where no card is named and `environment` chooses devices itself. Raises RM301 or RM303 where a card
    named is not here.

    Args:
        cell: cell whose wheels run.
        hardware: this machine's.
        indices: `Card.index` of each card named; empty for none.
        environment: variables of the shell by name.
    """
    if indices:
        return _only(hardware, choose_cards(cell, hardware, indices, environment=environment))
    fitting = [card for card in hardware.cards if card.gfx == cell.architecture]
    if not fitting:
        return without_integrated(hardware, environment)
    return {} if any(environment.get(name) for name in READ_BY_HIP) else _only(hardware, fitting)


def without_integrated(hardware: Hardware, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a native run needs so that a GPU of the processor does not stand next to the cards.

    Nothing where there is none, or where `environment` chooses devices itself.
    """
    if not hardware.hides_integrated or any(environment.get(name) for name in READ_BY_HIP):
        return {}
    return _only(hardware, [card for card in hardware.cards if not card.integrated])


def _only(hardware: Hardware, chosen: Sequence[Card]) -> dict[str, str]:
    """Return the variable that leaves a native run the cards of `chosen`, none where they are all there are."""
    content = visible_devices(hardware, chosen, all_shown=True)
    return {} if content is None else {"ROCR_VISIBLE_DEVICES": content}


def usable_nodes(
    hardware: Hardware, chosen: Sequence[Card], *, user: str, rootless: bool = False
) -> tuple[DeviceNode, ...]:
    """Return /dev/kfd and the render nodes of `chosen`; nothing for no card.

    `user` is "uid:gid". Raises RM302 where a node is missing, or stays closed to that user even with its group; a
    rootless engine hands no group on.

    Args:
        chosen: cards whose render nodes are needed.
        user: "uid:gid" in numbers.
        rootless: the engine runs as this user.
    """
    if not chosen:
        return ()
    found = [_present("/dev/kfd", hardware.kfd)]
    found += [_present(card.render_path or f"the render node of card {card.index}", card.render) for card in chosen]
    nodes = tuple(found)
    uid, gid = (int(number) for number in user.split(":"))
    groups = frozenset({gid} if rootless else {gid, *groups_of(nodes)})
    for node in nodes:
        if not (node.opens_for(uid=uid, groups=groups) or (rootless and is_listed(node, uid))):
            raise _closed_to_rootless(node, user) if rootless else _closed(node, user)
    return nodes


def is_listed(node: DeviceNode, uid: int) -> bool:
    """Return whether the node's access list lets the user read and write it (acl(5); logind's uaccess)."""
    try:
        raw = os.getxattr(node.host, "system.posix_acl_access")
    except OSError:
        return False
    entries = [struct.unpack_from("<HHI", raw, at) for at in range(4, len(raw) - 7, 8)]
    mask = next((rights for tag, rights, _ in entries if tag == ACL_MASK), 0o7)
    return any(tag == ACL_USER and number == uid and rights & mask & 0o6 == 0o6 for tag, rights, number in entries)


def _present(path: str, node: DeviceNode | None) -> DeviceNode:
    if node is None:
        raise RocmatrixError(
            "RM302",
            what=f"{path} is not there",
            why="the amdgpu driver made no such node, or this is a container that was not given it",
            next="Look at `ls -ln /dev/kfd /dev/dri` on the host; `sudo modprobe amdgpu` makes the nodes.",
        )
    return node


def _closed(node: DeviceNode, user: str) -> RocmatrixError:
    return RocmatrixError(
        "RM302",
        what=f"{node.path} cannot be opened by user {user}",
        why=f"it belongs to {node.uid}:{node.gid} with mode {node.mode:04o}, and no group opens it",
        next="Give it to a group that may read and write it, with a udev rule such as "
        'SUBSYSTEM=="kfd", GROUP="render", MODE="0660".',
    )


def _closed_to_rootless(node: DeviceNode, user: str) -> RocmatrixError:
    uid = user.partition(":")[0]
    return RocmatrixError(
        "RM302",
        what=f"{node.path} cannot be opened by user {user} under a rootless engine",
        why=f"it belongs to {node.uid}:{node.gid} with mode {node.mode:04o}; such an engine leaves its user's further "
        "groups outside, and a group added by its number is another one of the host",
        next=f"Name the user on the node: sudo setfacl -m u:{uid}:rw {node.host} (until it is made anew), or open it "
        'by a udev rule: KERNEL=="kfd", MODE="0666" and SUBSYSTEM=="drm", KERNEL=="renderD*", MODE="0666" '
        "(ROCm/ROCm-docker#90); or use the engine that runs as root, or --in native.",
    )
