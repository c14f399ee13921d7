"""Files and folders that the trainer reads next to --data: found on the host, and where a container has them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rocmatrix.containers.least_privilege import CALLER, DATA_FOLDER
from rocmatrix.containers.settings import Mount
from rocmatrix.runtime.errors import RocmatrixError

# Options that name one, with the trainer's word for none: a second file of bars, and a folder of pretrained weights.
OPTIONS = ("join", "model")
NONE = "none"


def named(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that name a file or a folder, as typed."""
    return {name: str(options[name]) for name in OPTIONS if options.get(name) and options[name] != NONE}


def target(option: str, path: str) -> str:
    """Return where a container has what an option names: apart from --data, which may have the same name.

    Args:
        option: its name, such as "join".
        path: as typed.
    """
    return f"{DATA_FOLDER}/.{option}/{Path(os.path.abspath(path)).name}"  # noqa: PTH100 -- resolve() follows links


def inside(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options with the places that a container has."""
    return {option: target(option, path) for option, path in named(options).items()}


def mounts(options: Mapping[str, Any], *, on_claim: bool = False) -> Iterator[Mount]:
    """Yield the mounts of what the options name.

    Args:
        options: the trainer's options.
        on_claim: paths are relative to a claim, and stay as they are.
    """
    for option, path in named(options).items():
        origin = path if on_claim else os.path.abspath(path)  # noqa: PTH100 -- a link may mean another place on a node
        reason = f"what --{option} names is read, never changed"
        yield Mount(
            kind="bind", origin=origin, target=target(option, path), read_only=True, reason=reason, source=CALLER
        )


def require(options: Mapping[str, Any]) -> None:
    """Raise RM404 where an option names nothing that exists on this machine."""
    for option, path in named(options).items():
        if not Path(path).exists():
            raise RocmatrixError("RM404", what=f"--{option} names nothing that exists", where=path)
