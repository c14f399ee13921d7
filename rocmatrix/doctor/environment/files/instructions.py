"""Instructions of a Dockerfile besides RUN and ENV: what it copies from images, and for which processor it builds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmatrix.doctor.environment.lint_input import FileFinding

_COPIED = re.compile(r"--from=(?P<image>\S+)")
_MOVES = re.compile(r"^(?:latest|main|master|nightly|edge|dev|stable)$")
_OTHER_PROCESSOR = re.compile(r"--platform=[\"']?(?:linux/)?(?P<name>arm64|aarch64|arm/v\d|ppc64le|riscv64)\b")
_WITH_USER = re.compile(r"^(?:docker\.io/)?rocm/rocm-terminal(?::|@|$)")
_OF_ROOT = re.compile(
    r"(?:^|[;&|(]\s*|\b(?:then|do|else)\s+)(?:\w+=\S*\s+)*(?:apt|apt-get|dpkg|add-apt-repository)\s(?!--help)"
)
_ROCM = re.compile(r"(?:^|[\s/])rocm/|rocm\d|-rocm", re.IGNORECASE)


def copied(value: str, where: str) -> Iterator[FileFinding]:
    """Yield an image of another registry that COPY takes files from, by a tag that moves.

    Args:
        value: what stands behind COPY.
        where: its file and line.
    """
    found = _COPIED.search(value)
    image = found["image"] if found else ""
    _, _, tag = image.rpartition("/")[2].partition(":")
    if "/" in image and "$" not in image and "@" not in image and (not tag or _MOVES.match(tag)):
        yield FileFinding(
            rule="copied-image-moves", where=where, what=image, severity="note",
            truth=f"{tag or 'latest (no tag is given)'} is another image with every release of that program",
            instead="a tag that names the release, or a digest",
        )  # fmt: skip


def other_processor(value: str, where: str) -> Iterator[FileFinding]:
    """Yield a base of ROCm that is asked for on a processor that it is not built for.

    Args:
        value: what stands behind FROM.
        where: its file and line.
    """
    found = _OTHER_PROCESSOR.search(value)
    if found and _ROCM.search(value):
        yield FileFinding(
            rule="platform-without-rocm", where=where, what=value, severity="error",
            truth=f"AMD builds ROCm and its images for x86-64 alone; there is none for {found['name']}",
            instead="--platform=linux/amd64",
        )  # fmt: skip


def not_root(image: str | None, command: str, where: str) -> Iterator[FileFinding]:
    """Yield a call of apt in an image that names another user than root, before the file names one.

    Args:
        image: what the stage is built on.
        command: of its shell.
        where: its file and line.
    """
    called = _OF_ROOT.search(command) if _WITH_USER.match(image or "") else None
    if called:
        yield FileFinding(
            rule="image-is-not-root", where=where, what=f"{called[0].strip(' ;&|(')} in {image}", severity="error",
            truth="that image runs as its user rocm-user, who may not install packages (Permission denied)",
            instead="USER root above, or sudo apt-get",
        )  # fmt: skip


def unused(image: str, where: str) -> Iterator[FileFinding]:
    """Yield a stage that has no name and that nothing is copied from: the image has nothing of it.

    Args:
        image: what it is built on.
        where: its file and line.
    """
    yield FileFinding(
        rule="stage-without-use", where=where, what=f"FROM {image}", severity="warning",
        truth="the next FROM begins anew: the image has nothing of this one, as it has no name and nothing is copied "
        "from it",
        instead="one FROM alone, or FROM … AS a name with COPY --from=that name; for ROCm a base that has it",
    )  # fmt: skip
