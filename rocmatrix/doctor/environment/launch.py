"""How a container is started: what a compose service or a docker run line hands to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# options of docker run and podman run that take a value; the first other word is the image
_VALUED = frozenset((
    "-e", "--env", "--env-file", "-v", "--volume", "--mount", "-p", "--publish",
    "-w", "--workdir", "-u", "--user", "--name", "--hostname", "-h", "--network",
    "--net", "--device", "--group-add", "--shm-size", "--ipc", "--security-opt", "--cap-add", "--cap-drop",
    "--ulimit", "--memory", "-m", "--cpus", "--gpus", "--runtime", "--entrypoint", "--restart",
    "--label", "-l", "--add-host", "--pid", "--userns", "--platform", "--pull", "--tmpfs",
    "--log-driver", "--cidfile", "--device-cgroup-rule", "--annotation", "--hooks-dir", "--dns",
    "--env-host", "--stop-timeout",
    "--link", "--log-opt", "--memory-swap", "--memory-reservation", "--cpuset-cpus", "--cpuset-mems", "--cpu-shares",
    "--cpu-quota", "--cpu-period", "--pids-limit", "--volumes-from", "--expose", "--sysctl", "--network-alias", "--ip",
    "--ip6", "--mac-address", "--secret", "--label-file", "--dns-search", "--dns-option", "--domainname", "--uts",
    "--cgroup-parent", "--cgroupns", "--stop-signal", "--storage-opt", "--oom-score-adj", "--detach-keys", "--attach",
    "-a", "--health-cmd", "--health-interval", "--health-timeout", "--health-retries", "--health-start-period",
    "--pod", "--uidmap", "--gidmap", "--tz", "--umask", "--authfile", "--arch", "--os", "--sdnotify", "--systemd",
))  # fmt: skip
_RUNNERS = ("docker", "podman", "nerdctl")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What a container is given. `user` is None where the image decides, which is root for most."""

    image: str
    where: str
    devices: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    gpus: str | None = None
    shared_memory: str | None = None
    ipc: str | None = None
    user: str | None = None
    privileged: bool = False
    variables: tuple[tuple[str, str], ...] = ()
    runner: str = "docker"

    @property
    def for_amd(self) -> bool:
        """Whether something of it is meant for an AMD card."""
        named = any(name.startswith(("HSA_", "ROC", "HIP_")) for name, _ in self.variables)
        return named or self.privileged or any("kfd" in device or "dri" in device for device in self.devices)


def of_command(argv: Sequence[str], where: str) -> Launch | None:
    """Return what `docker run` (or podman, nerdctl; with sudo before it) hands over; None for other commands."""
    runner = next((at for at, word in enumerate(argv) if word.rpartition("/")[2] in _RUNNERS), None)
    if runner is None:
        return None
    rest = [word for word in argv[runner + 1 :] if word != "container"]
    if not rest or rest[0] not in ("run", "create"):
        return None
    options, image = _options(rest[1:])
    if image is None:
        return None
    return Launch(
        image=image,
        where=where,
        devices=tuple(value.split(":")[0] for value in options.get("--device", ())),
        groups=tuple(options.get("--group-add", ())),
        gpus=_last(options, "--gpus"),
        shared_memory=_last(options, "--shm-size"),
        ipc=_last(options, "--ipc"),
        user=_last(options, "-u") or _last(options, "--user"),
        privileged="--privileged" in options,
        variables=tuple(_variables([*options.get("-e", ()), *options.get("--env", ())])),
        runner=argv[runner].rpartition("/")[2],
    )


def _options(argv: Sequence[str]) -> tuple[dict[str, list[str]], str | None]:
    """Return the options by name, and the image: the first word that is no option nor the value of one."""
    options: dict[str, list[str]] = {}
    rest = iter(argv)
    for word in rest:
        if not word.startswith("-"):
            return options, word
        name, equals, value = word.partition("=")
        if equals:
            options.setdefault(name, []).append(value)
        elif name in _VALUED:
            options.setdefault(name, []).append(next(rest, ""))
        else:
            options.setdefault(name, [])
    return options, None


def _last(options: dict[str, list[str]], name: str) -> str | None:
    values = options.get(name)
    return values[-1] if values else None


def _variables(rows: Sequence[str]) -> Iterator[tuple[str, str]]:
    for row in rows:
        name, _, value = row.partition("=")
        yield name, value
