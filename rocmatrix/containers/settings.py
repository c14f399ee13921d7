"""Settings of a container run: one small class per kind of setting, each row with its reason and source.

`flag` and `value` spell a setting as `docker run` does, the notation in which people know them. Emitters match
on the classes and end in `assert_never`, so the type checker finds an emitter that forgets a kind.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import ClassVar, Literal

UNLIMITED = -1


class HostText(str):
    """Text with compose variables in it, to be filled in on the host; a plain `str` has none, `$` or not."""

    __slots__ = ()


def is_legible(text: str) -> bool:
    """Return whether every engine can be handed a text: bytes that are not UTF-8 have no place in JSON and YAML."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


@dataclass(frozen=True, kw_only=True)
class Reasoned:
    """Reason of a setting, and its source."""

    reason: str
    source: str


@dataclass(frozen=True, kw_only=True)
class User(Reasoned):
    """The numeric user and group of the program, "1000:1000"."""

    flag: ClassVar[str] = "--user"
    value: str


@dataclass(frozen=True, kw_only=True)
class Device(Reasoned):
    """A device node passed in, to be read and written but not made anew (no `m`)."""

    flag: ClassVar[str] = "--device"
    host: str
    container: str

    @property
    def value(self) -> str:
        """host:container:permissions."""
        return f"{self.host}:{self.container}:rw"


@dataclass(frozen=True, kw_only=True)
class CdiDevice(Reasoned):
    """A device by its name in a CDI specification on the host, "amd.com/gpu=0", which lists its nodes."""

    flag: ClassVar[str] = "--device"
    value: str


@dataclass(frozen=True, kw_only=True)
class Group(Reasoned):
    """A supplementary group by number: a name would be looked up in the image, where it means another number."""

    flag: ClassVar[str] = "--group-add"
    gid: int | HostText

    @property
    def value(self) -> str:
        """The number as text."""
        return str(self.gid)


@dataclass(frozen=True, kw_only=True)
class Environment(Reasoned):
    """An environment variable. One that is `passed` has no content here: whoever runs it hands the value on."""

    flag: ClassVar[str] = "--env"
    name: str
    content: str
    passed: bool = False

    @property
    def value(self) -> str:
        """NAME=content, or NAME alone."""
        return self.name if self.passed else f"{self.name}={self.content}"


@dataclass(frozen=True, kw_only=True)
class Mount(Reasoned):
    """A file or folder of the host (`bind`), or a named volume that the engine keeps."""

    flag: ClassVar[str] = "--mount"
    kind: Literal["bind", "volume"]
    origin: str
    target: str
    read_only: bool

    @property
    def is_legible(self) -> bool:
        """Whether engines read both paths as they are: Go reads a line's end of Windows in CSV as that of Unix."""
        return all(is_legible(path) and "\r\n" not in path for path in (self.origin, self.target))

    @property
    def value(self) -> str:
        """One record of CSV, as the engine parses it: a comma or a line's end in a path is quoted."""
        fields = [f"type={self.kind}", f"source={self.origin}", f"target={self.target}"]
        line = io.StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(fields + ["readonly"] * self.read_only)
        return line.getvalue().removesuffix("\r\n")


@dataclass(frozen=True, kw_only=True)
class Tmpfs(Reasoned):
    """A file system in memory, empty at the start; `bytes` is its limit, taken only as files fill it."""

    flag: ClassVar[str] = "--tmpfs"
    target: str
    bytes: int
    mode: str

    @property
    def options(self) -> str:
        """Mount options. Nothing in it can be run, and no set-uid bit counts."""
        return f"rw,noexec,nosuid,nodev,size={self.bytes},mode={self.mode}"

    @property
    def value(self) -> str:
        """target:options."""
        return f"{self.target}:{self.options}"


@dataclass(frozen=True, kw_only=True)
class SharedMemory(Reasoned):
    """The limit of /dev/shm in bytes, taken only as it fills."""

    flag: ClassVar[str] = "--shm-size"
    bytes: int

    @property
    def value(self) -> str:
        """The number of bytes as text."""
        return str(self.bytes)


@dataclass(frozen=True, kw_only=True)
class Limit(Reasoned):
    """A resource limit, soft and hard; `UNLIMITED` lifts it."""

    flag: ClassVar[str] = "--ulimit"
    name: str
    soft: int
    hard: int

    @property
    def value(self) -> str:
        """name=soft:hard."""
        return f"{self.name}={self.soft}:{self.hard}"


@dataclass(frozen=True, kw_only=True)
class Network(Reasoned):
    """The network: none but the loopback, the engine's private bridge, or, for RDMA alone, the host's own."""

    flag: ClassVar[str] = "--network"
    value: Literal["none", "bridge", "host"]


@dataclass(frozen=True, kw_only=True)
class Port(Reasoned):
    """A port of the container published on an address of the host."""

    flag: ClassVar[str] = "--publish"
    address: str
    host: int
    container: int

    @property
    def value(self) -> str:
        """address:host:container."""
        return f"{self.address}:{self.host}:{self.container}"


@dataclass(frozen=True, kw_only=True)
class Ipc(Reasoned):
    """Shared memory and semaphores of the host instead of the container's own."""

    flag: ClassVar[str] = "--ipc"
    value: Literal["host"]


@dataclass(frozen=True, kw_only=True)
class DropCapability(Reasoned):
    """A capability taken away from every process of the container, root's too."""

    flag: ClassVar[str] = "--cap-drop"
    value: str


@dataclass(frozen=True, kw_only=True)
class AddCapability(Reasoned):
    """A capability that a named feature needs."""

    flag: ClassVar[str] = "--cap-add"
    value: str


@dataclass(frozen=True, kw_only=True)
class SecurityOption(Reasoned):
    """A security option of the engine."""

    flag: ClassVar[str] = "--security-opt"
    value: str


@dataclass(frozen=True, kw_only=True)
class ReadOnlyRoot(Reasoned):
    """The image's own files cannot be changed."""

    flag: ClassVar[str] = "--read-only"
    value: ClassVar[str] = "true"


@dataclass(frozen=True, kw_only=True)
class Init(Reasoned):
    """A small first process that passes signals on and collects dead children."""

    flag: ClassVar[str] = "--init"
    value: ClassVar[str] = "true"


Setting = (
    User
    | Device
    | CdiDevice
    | Group
    | Environment
    | Mount
    | Tmpfs
    | SharedMemory
    | Limit
    | Network
    | Port
    | Ipc
    | DropCapability
    | AddCapability
    | SecurityOption
    | ReadOnlyRoot
    | Init
)
