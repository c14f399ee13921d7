"""Names that are nearly right: a setting that Compose refuses, a device node or a build backend that is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from rocmatrix.doctor.environment.launch import Launch
from rocmatrix.doctor.environment.lint_input import FileFinding, Fix

# of the compose specification, services
_LISTED = (
    "annotations attach blkio_config build cap_add cap_drop cgroup cgroup_parent command configs container_name",
    "cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime cpu_shares cpus cpuset",
    "credential_spec depends_on deploy develop device_cgroup_rules devices dns dns_opt dns_search domainname",
    "driver_opts entrypoint env_file environment expose extends external_links extra_hosts gpus group_add",
    "healthcheck hostname image init ipc isolation label_file labels links logging mac_address mem_limit",
    "mem_reservation mem_swappiness memswap_limit models network_mode networks oom_kill_disable oom_score_adj pid",
    "pids_limit platform ports post_start pre_stop privileged profiles provider pull_policy read_only restart",
    "runtime scale secrets security_opt shm_size stdin_open stop_grace_period stop_signal storage_opt sysctls",
    "tmpfs tty ulimits use_api_socket user userns_mode uts volumes volumes_from working_dir",
)
_SETTINGS = frozenset(name for row in _LISTED for name in row.split())
_NEAR = 0.84  # how alike two names are, of 1: device and devices, group-add and group_add
_NODES = ("kfd", "dri")


def of_service(names: Iterable[str], launch: Launch) -> Iterator[FileFinding]:
    """Yield settings and device nodes of a service whose names have a letter too many, too few or elsewhere.

    Args:
        names: the settings of the service.
        launch: how it is started, for their lines.
    """
    for name in names:
        near = difflib.get_close_matches(name, _SETTINGS, 1, _NEAR) if name not in _SETTINGS else []
        if near and not name.startswith("x-"):
            yield FileFinding(
                rule="setting-nearly-right", where=launch.line_of(name), what=name, severity="error",
                truth="no setting of a service has that name, and Compose refuses the file", instead=near[0],
            )  # fmt: skip
    for name, where in launch.lines:
        yield from of_node(name, where)


def of_node(name: str, where: str) -> Iterator[FileFinding]:
    """Yield a device node whose letters stand in another order.

    Args:
        name: its path.
        where: its file and line.
    """
    found = re.fullmatch(r"/dev/(?P<node>[a-z]{2,4})", name)
    right = next((node for node in _NODES if found and sorted(node) == sorted(found["node"])), None)
    if found and right is not None and found["node"] != right:
        yield FileFinding(
            rule="device-nearly-right", where=where, what=name, severity="error",
            truth="there is no node of that name, and the engine does not start the container",
            instead=f"/dev/{right}", fix=Fix(where=where, before=name, after=f"/dev/{right}"),
        )  # fmt: skip


# projects whose one backend has one name; another name below them is a module that does not exist
_BACKENDS = {"setuptools": "setuptools.build_meta", "hatchling": "hatchling.build"}


def of_build_backend(backend: str, where: str) -> Iterator[FileFinding]:
    """Yield the backend of a pyproject file that its project does not have.

    Args:
        backend: as build-system names it, with the object behind a colon.
        where: its file and line.
    """
    right = _BACKENDS.get(backend.partition(".")[0])
    if right is not None and backend.partition(":")[0] != right:
        yield FileFinding(
            rule="build-backend-absent", where=where, what=backend, severity="error",
            truth="there is no such module, and pip and uv stop before they build (Cannot import ...)",
            instead=right, fix=Fix(where=where, before=backend, after=right),
        )  # fmt: skip
