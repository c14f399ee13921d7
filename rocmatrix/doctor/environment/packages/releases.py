"""The ROCm releases that one image names: of its base, its package sources, its wheels. They have to be one release."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rocmatrix.doctor.environment.lint_input import FileFinding, Subject
from rocmatrix.doctor.environment.shell.words import parts

Kind = Literal["base", "apt", "wheels", "index"]
_NUMBER = r"(?P<rocm>\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)"
_BASE = re.compile(rf"rocm[-_]?{_NUMBER}|(?:^|/)rocm/(?:dev|rocm)-[\w.-]+:{_NUMBER.replace('rocm', 'tag')}")
_TORCH = re.compile(r"^(?:docker\.io/)?rocm/pytorch:rocm\S*_pytorch_(?:release_)?(?P<torch>\d+\.\d+\.\d+)")
_FORMS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("apt", re.compile(rf"repo\.radeon\.com/rocm/(?:apt|rhel\d+|el\d+|yum|zyp/zypper)/{_NUMBER}")),
    ("apt", re.compile(rf"repo\.radeon\.com/amdgpu-install/{_NUMBER}/")),
    ("wheels", re.compile(rf"repo\.radeon\.com/rocm/manylinux/rocm-rel-{_NUMBER}")),
    ("index", re.compile(rf"/whl/(?:test/|nightly/)?rocm{_NUMBER}")),
)
_PINNED = re.compile(rf"\btorch==[\d.]+\+rocm{_NUMBER}")
_SOURCE = re.compile(
    r"repo\.radeon\.com/(?:(?:rocm|amdgpu|graphics)/\S*?\s+(?P<code>focal|jammy|noble)\b"
    r"|amdgpu-install/[\d.]+/ubuntu/(?P<path>focal|jammy|noble)/)"
)
_CODENAMES = {"20.04": "focal", "22.04": "jammy", "24.04": "noble"}
_NOBLE = re.compile(r"repo\.radeon\.com/(?:rocm/apt/(?P<rocm>\d{1,2}\.\d{1,2}(?:\.\d)?)\s+noble\b)")
_NOBLE_SINCE = (6, 2)
_OLDEST = 6
_DEBIANS = {"12": "jammy", "bookworm": "jammy", "13": "noble", "trixie": "noble"}  # what AMD names for Debian
_WORDS = {
    "base": "the image has ROCm {}", "apt": "the package source is of ROCm {}",
    "wheels": "AMD's wheels are of ROCm {}", "index": "PyTorch's index is of ROCm {}",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Mention:
    kind: Kind
    rocm: str
    where: str

    @property
    def series(self) -> tuple[str, ...]:
        return tuple(self.rocm.split(".")[:2])

    @property
    def text(self) -> str:
        return _WORDS[self.kind].format(self.rocm)


def rocm_of_image(image: str | None) -> str | None:
    """Return the ROCm that an image's name states; None where it states none."""
    match = _BASE.search(image or "")
    return (match["rocm"] or match["tag"]) if match else None


def of_run(subject: Subject) -> Subject:
    """Return a subject with the ROCm and the torch that its image's name states, where nothing else names them."""
    image = subject.image or (subject.launch.image if subject.launch else None)
    torch = _TORCH.search(image or "")
    return replace(
        subject,
        rocm=subject.rocm or rocm_of_image(image),
        torch=subject.torch or (torch["torch"] if torch and not subject.pairs else None),
    )


def rocm_there(subject: Subject) -> str | None:
    """Return the ROCm that compilers of a subject find: of its base, or of its package sources."""
    return next((row.rocm for row in _mentions(subject) if row.kind in ("base", "apt")), None)


def found(subject: Subject) -> Iterator[FileFinding]:
    """Yield releases that differ, package sources of another distribution, and a kernel driver built in an image."""
    mentions = tuple(row for row in _mentions(subject) if not _is_passed_over(row, subject))
    yield from _differing(mentions)
    yield from _old([row for row in mentions if row.kind != "base" or not subject.inherits])
    yield from _before_noble(subject)
    if subject.image is not None:
        yield from _of_another_distribution(subject)
        yield from _kernel_driver(subject)


def _old(mentions: Sequence[_Mention]) -> Iterator[FileFinding]:
    """Yield the first mention of a ROCm that gets no more fixes."""
    old = next((row for row in mentions if row.kind in ("base", "apt") and int(row.series[0]) < _OLDEST), None)
    if old is not None:
        yield FileFinding(
            rule="rocm-release-old", where=old.where, what=old.text, severity="note",
            truth=f"releases before ROCm {_OLDEST}.0 get no more fixes, and few programs are built for them still",
            instead="a newer release, as far as it has the card's architecture (./invokew explain)",
        )  # fmt: skip


def _mentions(subject: Subject) -> Iterator[_Mention]:
    rocm = rocm_of_image(subject.image)
    if rocm is not None:
        yield _Mention(kind="base", rocm=rocm, where=subject.where or subject.name)
    for command in subject.commands:
        for kind, form in _FORMS:
            for match in form.finditer(command.text):
                yield _Mention(kind=kind, rocm=match["rocm"], where=command.where)


def _is_passed_over(row: _Mention, subject: Subject) -> bool:
    """Return whether a folder of wheels is of another ROCm than the one that torch's own version names."""
    pinned = next((match for one in subject.commands if (match := _PINNED.search(one.text))), None)
    return row.kind == "wheels" and pinned is not None and row.series != tuple(pinned["rocm"].split(".")[:2])


def _differing(mentions: Sequence[_Mention]) -> Iterator[FileFinding]:
    """Yield the first mention of each kind that differs from what is installed, or from other wheels."""
    installed = next((row for row in mentions if row.kind == "base"), None)
    installed = installed or next((row for row in mentions if row.kind == "apt"), None)
    wheels = next((row for row in mentions if row.kind == "wheels"), None)
    seen: set[tuple[str, str]] = set()
    for row in mentions:
        other = _other(row, installed, wheels)
        if other is not None and row.series != other.series and (row.kind, row.rocm) not in seen:
            seen.add((row.kind, row.rocm))
            yield _finding(row, other)


def _other(row: _Mention, installed: _Mention | None, wheels: _Mention | None) -> _Mention | None:
    if row is installed:
        return None
    return installed or (wheels if row.kind == "wheels" else None)


def _finding(row: _Mention, other: _Mention) -> FileFinding:
    bundled = row.kind == "index"  # those wheels bring their libraries
    return FileFinding(
        rule="releases-differ", where=row.where, what=f"{other.text}; {row.text}",
        severity="note" if bundled else "warning",
        truth="PyTorch's wheels bring their own libraries; what is compiled in the image uses the other release"
        if bundled
        else "libraries of two ROCm releases meet in one process, or the wheels' libraries are missing",
        instead=f"one release: ROCm {other.rocm} in both places",
    )  # fmt: skip


def codename(image: str) -> str | None:
    """Return the release of Ubuntu that an image's name states, or the one that AMD names for its Debian."""
    ubuntu = re.search(r"ubuntu[-:_]?(20\.04|22\.04|24\.04)", image)
    if ubuntu:
        return _CODENAMES[ubuntu[1]]
    named = re.search(r"ubuntu:(focal|jammy|noble)", image)
    debian = re.search(r"(?:^|/)debian:(\d+|bookworm|trixie)|-(bookworm|trixie)$", image)
    return named[1] if named else _DEBIANS.get(debian[1] or debian[2]) if debian else None


def _of_another_distribution(subject: Subject) -> Iterator[FileFinding]:
    release = codename(subject.image or "")
    for command in subject.commands:
        for match in _SOURCE.finditer(command.text):
            named = match["code"] or match["path"]
            if release is not None and named != release:
                yield FileFinding(
                    rule="source-of-another-release", where=command.where, what=f"{named} on {subject.image}",
                    severity="warning",
                    truth=f"the packages are built for {named}, the image is {release}: its libraries differ",
                    instead=f"{release} in the address, or the image that {named} is",
                )  # fmt: skip
        if "fedora" in (subject.image or "") and (
            other := re.search(r"repo\.radeon\.com/rocm/(rhel\d+|el\d+)", command.text)
        ):
            yield FileFinding(
                rule="source-of-another-release", where=command.where, what=f"{other[1]} on {subject.image}",
                severity="note",
                truth="AMD builds nothing for Fedora; packages for Enterprise Linux expect its libraries",
                instead="Fedora's own packages of ROCm, or an image of that Enterprise Linux",
            )  # fmt: skip


def _before_noble(subject: Subject) -> Iterator[FileFinding]:
    """Yield AMD's packages for Ubuntu 24.04 of a ROCm that has none."""
    for command in subject.commands:
        for match in _NOBLE.finditer(command.text):
            if tuple(map(int, match["rocm"].split(".")[:2])) < _NOBLE_SINCE:
                yield FileFinding(
                    rule="source-of-another-release", where=command.where, what=f"noble with ROCm {match['rocm']}",
                    severity="error",
                    truth="AMD's packages for Ubuntu 24.04 (noble) begin with ROCm 6.2: apt finds no such folder",
                    instead="ROCm 6.2 or newer, or Ubuntu 22.04 (jammy)",
                )  # fmt: skip


def _kernel_driver(subject: Subject) -> Iterator[FileFinding]:
    for command in subject.commands:
        for words in parts(command.text, "amdgpu-install"):
            names = [word.rpartition("/")[2] for word in words]
            at = names.index("amdgpu-install") if "amdgpu-install" in names else None
            before = names[: at or 0]
            if (
                at is None
                or "install" in before
                or {"--no-dkms", "--list-usecase", "--uninstall", "--help"} & set(words)
            ):
                continue
            yield FileFinding(
                rule="driver-in-image", where=command.where, what=" ".join(words[at:]), severity="warning",
                truth="amdgpu-install builds the kernel driver by default; a container uses that of the host, and has "
                "no kernel headers to build it",
                instead="--no-dkms",
            )  # fmt: skip
