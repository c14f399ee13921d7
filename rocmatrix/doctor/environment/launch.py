"""How a container is started: what a compose service or a docker run line hands to it."""

from __future__ import annotations

import re
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
# a whole word that a shell replaces by none, one or several words
_UNKNOWN = re.compile(r"^(?:\$(?:\w+|[({].*|[@*])|`.*`)$", re.DOTALL)
_IMAGE = re.compile(r"^[\w.-]+(?:/[\w.-]+)+:[\w.$-]+$")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What a container is given. `user` is None where the image decides, which is root for most.

    `drivers`: what reserves cards, by the engine's name of it, and the runtime where it is one of a maker of cards.
    `fixed_groups`: groups whose numbers stand in the file itself, not in a variable; `groups_at`, `drivers_at`:
    where they are. `volumes`: folders of the host that are mounted, as source:target;
    `platform`: the processor that the image is asked for.
    `rootful`: started by root, as with sudo; None where the file does not state it. `partial`: the words hold a
    variable that may stand for further options, so nothing can be concluded from an option that is not there. `lines`:
    settings and values, each with the line that it has to itself.
    """

    image: str
    where: str
    devices: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    fixed_groups: tuple[str, ...] = ()
    groups_at: str | None = None
    drivers_at: str | None = None
    volumes: tuple[str, ...] = ()
    platform: str | None = None
    gpus: str | None = None
    shared_memory: str | None = None
    ipc: str | None = None
    user: str | None = None
    privileged: bool = False
    variables: tuple[tuple[str, str], ...] = ()
    runner: str = "docker"
    drivers: tuple[str, ...] = ()
    rootful: bool | None = False
    partial: bool = False
    lines: tuple[tuple[str, str], ...] = ()

    def line_of(self, *texts: str) -> str:
        """Return where the first of some settings and values stands; where it is started if none has its own line."""
        return next((where for one in texts for text, where in self.lines if text == one), self.where)

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
    options, image, partial = _options(rest[1:])
    if image is None:
        return None
    return Launch(
        image=image,
        where=where,
        devices=tuple(value.split(":")[0] for value in options.get("--device", ())),
        groups=tuple(options.get("--group-add", ())),
        platform=_last(options, "--platform"),
        volumes=(*options.get("-v", ()), *options.get("--volume", ())),
        fixed_groups=tuple(group for group in options.get("--group-add", ()) if group.isdecimal()),
        gpus=_last(options, "--gpus"),
        shared_memory=_last(options, "--shm-size"),
        ipc=_last(options, "--ipc"),
        user=_last(options, "-u") or _last(options, "--user"),
        privileged="--privileged" in options,
        variables=tuple(_variables([*options.get("-e", ()), *options.get("--env", ())])),
        runner=argv[runner].rpartition("/")[2],
        drivers=tuple(name for name in options.get("--runtime", ()) if name in ("nvidia", "amd")),
        rootful="sudo" in argv[:runner],
        partial=partial or "--device-cgroup-rule" in options,
    )


def _options(argv: Sequence[str]) -> tuple[dict[str, list[str]], str | None, bool]:
    """Return the options by name, the image, and whether a variable among them may stand for further options.

    The image is the first word that is no option nor the value of one.
    """
    options: dict[str, list[str]] = {}
    at, partial = 0, False
    while at < len(argv):
        name, equals, value = argv[at].partition("=")
        at += 1
        if not name.startswith("-"):
            if _stands_for_options(argv, at):
                partial = True
                continue
            return options, argv[at - 1], partial
        row = options.setdefault(name, [])
        if equals:
            row.append(value)
        elif name in _VALUED:
            row.append(argv[at] if at < len(argv) else "")
            at += 1
    return options, None, partial


def _stands_for_options(argv: Sequence[str], after: int) -> bool:
    """Return whether the word before `after` is a variable with more options, or another such variable, behind it."""
    if not _UNKNOWN.match(argv[after - 1]) or after >= len(argv):
        return False
    several = "[@]" in argv[after - 1] or "[*]" in argv[after - 1]
    more = argv[after].startswith("-") or (bool(_UNKNOWN.match(argv[after])) and after + 1 < len(argv))
    return several or more or bool(_IMAGE.match(argv[after]))


def _last(options: dict[str, list[str]], name: str) -> str | None:
    values = options.get(name)
    return values[-1] if values else None


def _variables(rows: Sequence[str]) -> Iterator[tuple[str, str]]:
    for row in rows:
        name, equals, value = row.partition("=")
        yield name, value if equals else f"${{{name}}}"  # the caller's own value
