"""Run spec of a cell: all settings of its container, each with its reason and source.

Which settings a run gets and why stands in `rocmatrix.containers.least_privilege`; `rocmatrix.containers.emit` states
them to an engine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rocmatrix.containers import capability, least_privilege
from rocmatrix.containers.device_selection import choose_cards, handed, usable_nodes
from rocmatrix.containers.least_privilege import DATA_FOLDER, RUN_FOLDER
from rocmatrix.containers.settings import Environment, Group, HostText, Ipc, Mount, Setting, SharedMemory, is_legible
from rocmatrix.host.hardware import Hardware
from rocmatrix.host.sysfs import DeviceNode
from rocmatrix.matrix.matrix import Cell
from rocmatrix.runtime.errors import RocmatrixError

S = TypeVar("S", bound=Setting)


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """A container run as data. A `portable` one holds compose variables instead of this host's numbers.

    `command` goes to the image's own program, the trainer, unless `entrypoint` names another program.
    """

    cell: str
    image: str
    command: tuple[str, ...]
    settings: tuple[Setting, ...]
    portable: bool = False
    entrypoint: str | None = None
    features: frozenset[str] = frozenset()

    def of(self, kind: type[S]) -> tuple[S, ...]:
        """Return the settings of one kind, in order."""
        return tuple(setting for setting in self.settings if isinstance(setting, kind))


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """One line of `explain`; `value` is None where the flag is deliberately not given, "" where it takes none."""

    flag: str
    value: str | None
    reason: str
    source: str

    @property
    def option(self) -> str:
        """The line as one token of a command."""
        return f"{self.flag}={self.value}" if self.value else self.flag


def explain(spec: RunSpec) -> tuple[Explanation, ...]:
    """Return every setting of `spec` with its reason and source, then what was left out and why."""
    return (*map(explained, spec.settings), *left_out(spec.features))


def entrypoint_rows(spec: RunSpec) -> tuple[Explanation, ...]:
    """Return the line that replaces the image's own program, where one is named."""
    if spec.entrypoint is None:
        return ()
    reason = "the program that was asked for; the image's own is the trainer"
    return (Explanation(flag="--entrypoint", value=spec.entrypoint, reason=reason, source=least_privilege.CALLER),)


def explained(setting: Setting) -> Explanation:
    """Return a setting as a line, in the notation of `docker run`."""
    return Explanation(flag=setting.flag, value=setting.value, reason=setting.reason, source=setting.source)


def left_out(features: Collection[str] = ()) -> tuple[Explanation, ...]:
    """Return what a run with `features` deliberately does not get."""
    rows = (row for row in least_privilege.LEFT_OUT if row[3] not in features)
    return tuple(Explanation(flag=flag, value=None, reason=why, source=source) for flag, why, source, _ in rows)


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Choices for one run.

    `user` is "uid:gid" in numbers; `run_folder` and `data` are absolute paths on the host; `cards` are
    `Card.index`, by default all that the cell is built for; `environment` wins over the cell's own.
    `rootless`: the engine runs as the user, and no root is needed for it. `device_rules`: the kernel hides cards that
    the engine does not pass; it does so for no rootless engine, podman's included.
    `features` are names of `capability.FEATURES`; `rdma` are the host's adapters, for the feature of that name.
    `more` are settings that the caller brings; a variable among them wins over all others of its name.
    """

    image: str
    command: Sequence[str]
    run_folder: Path
    user: str
    entrypoint: str | None = None
    features: Collection[str] = ()
    rdma: Sequence[DeviceNode] = ()
    cards: Sequence[int] | None = None
    environment: Mapping[str, str] | None = None
    data: Path | None = None
    more: Sequence[Setting] = ()
    rootless: bool = False
    device_rules: bool = True

    @property
    def all_shown(self) -> bool:
        """Whether a container sees every card of the host, passed or not."""
        return self.rootless or not self.device_rules


def run_spec(cell: Cell, hardware: Hardware, chosen: Chosen) -> RunSpec:
    """Return how to run `cell` on this host.

    Raises RM404 for an unknown feature and for text that no engine can be handed, RM410 where the host has no adapter,
    RM301 where the cell needs a card and the host has none, RM302 where a device node is missing or closed to the
    user, RM303 where no card fits.
    """
    _check(chosen.user, chosen.run_folder, chosen.data)
    given = {*(chosen.environment or {}), *(row.name for row in chosen.more if isinstance(row, Environment))}
    cards = choose_cards(cell, hardware, chosen.cards, environment=given)
    passed = handed(hardware, cards, all_shown=chosen.all_shown)
    nodes = usable_nodes(hardware, passed, user=chosen.user, rootless=chosen.rootless)
    others = [card for card in passed if card not in cards]
    network = capability.network_of(chosen.features)
    variables = [
        *least_privilege.environment(cell, network=network),
        *(least_privilege.safe_path() if chosen.entrypoint is None else ()),
        *least_privilege.visibility(hardware, cards, all_shown=chosen.all_shown),
        *least_privilege.requested_variables(chosen.environment or {}),
        *(setting for setting in chosen.more if isinstance(setting, Environment)),
    ]
    settings: list[Setting] = [
        (least_privilege.user_of_rootless if chosen.rootless else least_privilege.user)(chosen.user),
        *least_privilege.devices(nodes, cards, others=others, rootless=chosen.rootless),
        *least_privilege.isolation(network=network),
        *least_privilege.labels(enforced=hardware.selinux),
        *least_privilege.files(
            cell,
            run_folder=str(chosen.run_folder),
            owner=chosen.user.partition(":")[0],
            simulated=hardware.simulated,
        ),
        *least_privilege.data(data_path(chosen.data) if chosen.data else None, origin=str(chosen.data)),
        *least_privilege.memory(cell, host_bytes=hardware.memory_bytes),
        *{variable.name: variable for variable in variables}.values(),  # the last one of a name wins
        *capability.settings_of(chosen.features, rdma=chosen.rdma),
        *(setting for setting in chosen.more if not isinstance(setting, Environment)),
    ]
    spec = RunSpec(
        cell=cell.name,
        image=chosen.image,
        command=tuple(chosen.command),
        settings=tuple(_agreed(settings)),
        entrypoint=chosen.entrypoint,
        features=frozenset(chosen.features),
    )
    require_legible(spec)
    return spec


def require_legible(spec: RunSpec) -> None:
    """Raise RM404 for a word or a path that an engine would get as another one, and for a program without a name."""
    if spec.entrypoint == "":
        raise RocmatrixError("RM404", what="the program to run has an empty name", next="Name one after `--`.")
    words = [spec.image, *spec.command, spec.entrypoint or ""]
    paths = [(mount.origin, mount.is_legible) for mount in spec.of(Mount)]
    for text, legible in (*((word, is_legible(word)) for word in words), *paths):
        if not legible:
            what = f"{text!r} is not text in UTF-8, or has a line's end of Windows, and engines would read another name"
            raise RocmatrixError("RM404", what=what, next="Rename it, or reach it by a link with a plain name.")


def portable_spec(cell: Cell) -> RunSpec:
    """Return how to train in `cell` on any host: what differs between hosts is a compose variable to be set."""
    uid = "${ROCMATRIX_UID:?your user id, printed by: id -u}"
    gid = "${ROCMATRIX_GID:?your group id, printed by: id -g}"
    folder = "${ROCMATRIX_RUN_FOLDER:?an absolute path to the folder that takes the results}"
    settings: list[Setting] = [
        least_privilege.user(HostText(f"{uid}:{gid}")),
        *(least_privilege.portable_devices() if cell.architecture else ()),
        *least_privilege.isolation(network="none"),
        *least_privilege.files(cell, run_folder=HostText(folder), owner=HostText("${ROCMATRIX_UID}")),
        *least_privilege.memory(cell, host_bytes=None),
        *least_privilege.environment(cell, network="none"),
        *least_privilege.safe_path(),
        *(least_privilege.portable_visibility() if cell.architecture else ()),
    ]
    return RunSpec(
        cell=cell.name,
        image=f"rocmatrix:{cell.image_name}",
        command=("train", f"--output={RUN_FOLDER}", f"--cell={cell.name}"),
        settings=tuple(settings),
        portable=True,
    )


def _agreed(settings: Sequence[Setting]) -> Iterator[Setting]:
    """Yield settings that an engine takes together: a group once, and no size for shared memory of the host's."""
    groups: set[int | HostText] = set()
    host_memory = any(isinstance(setting, Ipc) for setting in settings)
    for setting in settings:
        if isinstance(setting, Group):
            if setting.gid in groups:
                continue
            groups.add(setting.gid)
        if not (host_memory and isinstance(setting, SharedMemory)):
            yield setting


def data_path(data: Path) -> str:
    """Return where a run finds `data`, a file or folder of the host, inside its container."""
    return f"{DATA_FOLDER}/{data.name}"


def _check(user: str, *paths: Path | None) -> None:
    if not re.fullmatch(r"\d+:\d+", user):
        raise ValueError(f"{user!r} is not a numeric uid:gid")
    for path in paths:
        if path is not None and not path.is_absolute():
            raise ValueError(f"{path} is not an absolute path")
