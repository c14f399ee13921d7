"""Packages of the distribution in an image, by dpkg's own list, and what changed between two images.

A base's archive is not pinned: it moves on between two builds, and then the layer that installs from it differs.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from rocmatrix.containers import engine, orphan_cleanup
from rocmatrix.verify.files.dpkg import STATUS

if TYPE_CHECKING:
    import docker

MOST_NAMED = 20
_FIELD = re.compile(r"^(Package|Version|Status): (.+)$", re.MULTILINE)


def read(client: docker.DockerClient, image: str) -> dict[str, str]:
    """Return the installed packages of an image with their versions; none where it has no such list.

    Nothing of the image is run: a container is made, looked into, and removed.

    Args:
        image: reference or id of an image that the engine has.
    """
    with suppress(*engine.failures()):
        container = client.containers.create(
            image, ["true"], entrypoint=[], network_mode="none", labels=orphan_cleanup.label()
        )
        try:
            packed = io.BytesIO(b"".join(container.get_archive(STATUS)[0]))
        finally:
            container.remove(force=True)
        return parse(_only_file(packed))
    return {}


def _only_file(packed: io.BytesIO) -> str:
    with suppress(tarfile.TarError), tarfile.open(fileobj=packed) as archive:
        member = archive.next()
        content = archive.extractfile(member) if member is not None else None
        return content.read().decode(errors="replace") if content else ""
    return ""


def parse(text: str) -> dict[str, str]:
    """Return the installed packages with their versions, from the text of dpkg's list."""
    rows = (dict(_FIELD.findall(block)) for block in text.split("\n\n"))
    return {
        row["Package"]: row["Version"]
        for row in rows
        if row.keys() == {"Package", "Version", "Status"} and row["Status"].endswith(" installed")
    }


def moved(held: Mapping[str, str], made: Mapping[str, str]) -> str:
    """Return the packages that differ between two images as text, at most MOST_NAMED of them; empty where none does.

    Args:
        held: packages and versions of the image that is there.
        made: those of the one built anew.
    """
    found = list(_differing(held, made)) if held and made else []
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"the base's archive has moved on: {', '.join(found[:MOST_NAMED])}{more}" if found else ""


def _differing(held: Mapping[str, str], made: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(held.keys() | made.keys()):
        old, new = held.get(name), made.get(name)
        if old != new:
            yield f"{name} {old or '(absent)'}, built anew {new or '(absent)'}"
