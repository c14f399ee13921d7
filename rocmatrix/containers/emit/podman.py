"""A run spec for podman, which has no daemon: it can grant no more than the user's own rights."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence

from rocmatrix.containers.emit.docker import OWN_ROWS
from rocmatrix.containers.emit.parts import refuse_portable
from rocmatrix.containers.emit.target import Host, Target
from rocmatrix.containers.least_privilege import UNLABELLED
from rocmatrix.containers.runspec import Explanation, RunSpec, entrypoint_rows, explained, left_out
from rocmatrix.containers.settings import Group, SecurityOption, Setting

MANUAL = "docs.podman.io/en/latest/markdown/podman-run.1.html"


def podman_run_argv(spec: RunSpec, *, rootless: bool, selinux: bool) -> list[str]:
    """Return the command that runs `spec` and removes its container. Raises ValueError for a portable spec.

    Args:
        rootless: podman is run by a user other than root.
        selinux: the host enforces SELinux.
    """
    refuse_portable(spec)
    options = [row.option for row in podman_rows(spec, rootless=rootless, selinux=selinux)]
    return ["podman", "run", *options, spec.image, *spec.command]


def podman_rows(spec: RunSpec, *, rootless: bool, selinux: bool) -> tuple[Explanation, ...]:
    """Return every option with its reason.

    Args:
        rootless: podman is run by a user other than root.
        selinux: the host enforces SELinux.
    """
    own = [setting for setting in spec.settings if not _repeated(setting, rootless=rootless)]
    rows = [_spelled(setting) for setting in own]
    return (
        *OWN_ROWS,
        *rows,
        *(_rootless(spec.settings) if rootless else ()),
        *_own(selinux=selinux),
        *entrypoint_rows(spec),
    )


def editor_rows(settings: Sequence[Setting]) -> tuple[Explanation, ...]:
    """Return what a development container is given where an editor calls podman, run by a user other than root."""
    kept = [_spelled(setting) for setting in settings if not isinstance(setting, Group)]
    return (*kept, *_rootless(settings))


def _repeated(setting: object, *, rootless: bool) -> bool:
    """Return whether podman has an option of its own in the place of a setting: for groups, and for SELinux."""
    unlabelled = isinstance(setting, SecurityOption) and setting.value == UNLABELLED
    return unlabelled or (rootless and isinstance(setting, Group))


def _spelled(setting: object) -> Explanation:
    row = explained(setting)  # type: ignore[arg-type]
    if isinstance(setting, SecurityOption) and setting.value == "no-new-privileges:true":
        return Explanation(flag=row.flag, value="no-new-privileges", reason=row.reason, source=row.source)
    return row


def _rootless(settings: Sequence[Setting]) -> Iterator[Explanation]:
    yield Explanation(
        flag="--userns",
        value="keep-id",
        reason="the user keeps their number inside, so that results are theirs and the nodes know them",
        source=f"{MANUAL}#userns-mode",
    )
    groups = ", ".join(str(setting.gid) for setting in settings if isinstance(setting, Group))
    if groups:
        yield Explanation(
            flag="--group-add",
            value="keep-groups",
            reason=f"the user's own groups stay, {groups} among them, which the nodes ask for; a number given by hand "
            "would be one of the user's range, which opens nothing. Needs crun",
            source=f"{MANUAL}#group-add-group-keep-groups",
        )


def _own(*, selinux: bool) -> Iterator[Explanation]:
    yield Explanation(
        flag="--read-only-tmpfs",
        value="false",
        reason="podman would make /run and /var/tmp writable as well",
        source=f"{MANUAL}#read-only-tmpfs",
    )
    if selinux:
        yield Explanation(
            flag="--security-opt",
            value=UNLABELLED,
            reason="SELinux is enforced here: with a label the container may neither open the nodes nor write the "
            "run folder, and giving the folder another label would change it on the host",
            source=f"{MANUAL}#security-opt-option",
        )


def missing_groups(spec: RunSpec, own: Sequence[int]) -> tuple[int, ...]:
    """Return the groups of the spec that a rootless engine cannot give, for the user is in none of them."""
    return tuple(int(group.gid) for group in spec.of(Group) if int(group.gid) not in own)


def _text(spec: RunSpec, host: Host) -> str:
    return shlex.join(podman_run_argv(spec, rootless=host.rootless, selinux=host.selinux)) + "\n"


def _rows(spec: RunSpec, host: Host) -> tuple[Explanation, ...]:
    return (*podman_rows(spec, rootless=host.rootless, selinux=host.selinux), *left_out(spec.features))


def _hints(spec: RunSpec, host: Host) -> tuple[str, ...]:
    load = f"podman keeps images of its own: docker save {spec.image} | podman load"
    missing = missing_groups(spec, os.getgroups()) if host.rootless else ()
    numbers = ", ".join(map(str, missing))
    join = f"this user is not in group {numbers}, so rootless podman cannot open the nodes: join it and log in again"
    return (load, join) if missing else (load,)


TARGETS: Mapping[str, Target] = {"podman": Target(about="a `podman run` command", text=_text, rows=_rows, hints=_hints)}
