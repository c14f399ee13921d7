"""How a cell is run: one spec, in which every setting carries its reason and its source.

Which settings a run gets and why stands in `rocmatrix.policy`; `rocmatrix.emit` says them to an engine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rocmatrix import policy
from rocmatrix.choice import choose_cards, usable_nodes
from rocmatrix.hardware import Hardware
from rocmatrix.matrix import Cell
from rocmatrix.policy import DATA_FOLDER, RUN_FOLDER
from rocmatrix.settings import HostText, Setting

S = TypeVar("S", bound=Setting)


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """A container run as data. A `portable` one holds compose variables instead of this host's numbers."""

    cell: str
    image: str
    command: tuple[str, ...]
    settings: tuple[Setting, ...]
    portable: bool = False

    def of(self, kind: type[S]) -> tuple[S, ...]:
        """Return the settings of one kind, in order."""
        return tuple(setting for setting in self.settings if isinstance(setting, kind))


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """One line of `explain`; `value` is None where the flag is deliberately not given."""

    flag: str
    value: str | None
    reason: str
    source: str


def explain(spec: RunSpec) -> tuple[Explanation, ...]:
    """Return every setting of `spec` with its reason and source, then what was left out and why."""
    given = (Explanation(flag=s.flag, value=s.value, reason=s.reason, source=s.source) for s in spec.settings)
    left_out = (Explanation(flag=flag, value=None, reason=why, source=source) for flag, why, source in policy.LEFT_OUT)
    return (*given, *left_out)


def run_spec(  # noqa: PLR0913 -- the choices of one run, all by keyword
    cell: Cell,
    hardware: Hardware,
    *,
    image: str,
    command: Sequence[str],
    run_folder: Path,
    user: str,
    network: bool = False,
    cards: Sequence[int] | None = None,
    environment: Mapping[str, str] | None = None,
    data: Path | None = None,
) -> RunSpec:
    """Return how to run `cell` on this host.

    `user` is "uid:gid" in numbers; `run_folder` and `data` are absolute paths on the host; `cards` are
    `Card.index`, by default all that the cell is built for; `environment` wins over the cell's own.
    Raises RM301 where the cell needs a card and the host has none, RM302 where a device node is missing or
    closed to `user`, RM303 where no card fits.
    """
    _check(user, run_folder, data)
    chosen = choose_cards(cell, hardware, cards)
    nodes = usable_nodes(hardware, chosen, user=user)
    variables = [
        *policy.environment(cell, network=network),
        *policy.visibility(hardware, chosen),
        *policy.asked_for(environment or {}),
    ]
    settings: list[Setting] = [
        policy.user(user),
        *policy.devices(nodes, chosen),
        *policy.isolation(network=network),
        *policy.files(cell, run_folder=str(run_folder), owner=user.partition(":")[0]),
        *policy.data(data_path(data) if data else None, origin=str(data)),
        *policy.memory(cell, host_bytes=hardware.memory_bytes),
        *{variable.name: variable for variable in variables}.values(),  # the last one of a name wins
    ]
    return RunSpec(cell=cell.name, image=image, command=tuple(command), settings=tuple(settings))


def portable_spec(cell: Cell) -> RunSpec:
    """Return how to train in `cell` on any host: what differs between hosts is a compose variable to be set."""
    uid = "${ROCMATRIX_UID:?your user id, printed by: id -u}"
    gid = "${ROCMATRIX_GID:?your group id, printed by: id -g}"
    folder = "${ROCMATRIX_RUN_FOLDER:?an absolute path to the folder that takes the results}"
    settings: list[Setting] = [
        policy.user(HostText(f"{uid}:{gid}")),
        *(policy.portable_devices() if cell.architecture else ()),
        *policy.isolation(network=False),
        *policy.files(cell, run_folder=HostText(folder), owner=HostText("${ROCMATRIX_UID}")),
        *policy.memory(cell, host_bytes=None),
        *policy.environment(cell, network=False),
    ]
    return RunSpec(
        cell=cell.name,
        image=f"rocmatrix:{cell.name}",
        command=("train", f"--output={RUN_FOLDER}", f"--cell={cell.name}"),
        settings=tuple(settings),
        portable=True,
    )


def data_path(data: Path) -> str:
    """Return where a run finds `data`, a file or folder of the host, inside its container."""
    return f"{DATA_FOLDER}/{data.name}"


def _check(user: str, *paths: Path | None) -> None:
    if not re.fullmatch(r"\d+:\d+", user):
        raise ValueError(f"{user!r} is not a numeric uid:gid")
    for path in paths:
        if path is not None and not path.is_absolute():
            raise ValueError(f"{path} is not an absolute path")
