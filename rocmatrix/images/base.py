"""A base image other than the cell's own: as a person names it, or as the existing image records it."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from rocmatrix.containers import engine, orphan_cleanup
from rocmatrix.images import labels as image_labels
from rocmatrix.images.labels import OtherBase
from rocmatrix.matrix.matrix import Cell
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError

if TYPE_CHECKING:
    import docker

# The package python3 of a distribution, by its code name: packages.ubuntu.com and packages.debian.org (python3).
DISTRIBUTIONS: Mapping[str, str] = {
    "focal": "3.8", "jammy": "3.10", "noble": "3.12", "bullseye": "3.9", "bookworm": "3.11", "trixie": "3.13",
}  # fmt: skip
# Public images of which a distribution is the base, whatever their tag: AMD's Dockerfiles, ROCm/ROCm-docker (dev/).
PUBLIC: Mapping[str, str] = {
    "rocm/dev-ubuntu-20.04": "focal",
    "rocm/dev-ubuntu-22.04": "jammy",
    "rocm/dev-ubuntu-24.04": "noble",
}
TAGGED: Mapping[str, str] = {
    "ubuntu:20.04": "focal", "ubuntu:22.04": "jammy", "ubuntu:24.04": "noble", "debian:bullseye": "bullseye",
    "debian:bookworm": "bookworm", "debian:trixie": "trixie", "debian:11": "bullseye", "debian:12": "bookworm",
    "debian:13": "trixie",
}  # fmt: skip
_LINK = re.compile(r"^(?:.*/)?python(3\.\d+)$")
_CODE_NAME = re.compile(r"^VERSION_CODENAME=\"?(\w+)", re.MULTILINE)


def chosen(client: docker.DockerClient, requested: str | None, held: engine.Image | None) -> OtherBase | None:
    """Return the base as asked for, else that of the image that is there; None for the cell's own.

    The id is looked up, for a tag may have moved. Where the engine has lost a base that the image was made from,
    the recorded id stands. Raises RM204 for one that cannot be had.

    Args:
        requested: reference of another base; None where none was named.
    """
    labels: Mapping[str, str] = held.labels if held else {}
    name = requested or labels.get(image_labels.BASE)
    if not name:
        return None
    if not requested:
        say(f"base: {name}, which this image was made from; --base names another")
    found = engine.image(client, name)
    recorded = labels.get(image_labels.BASE_ID)
    if found is None and name == labels.get(image_labels.BASE) and recorded:
        return OtherBase(name=name, id=recorded, describes=frozenset(image_labels.DESCRIBING))
    found = found or engine.obtain(client, name)
    return OtherBase(name=name, id=found.id, describes=frozenset(key for key, value in found.labels.items() if value))


def refuse_known(cell: Cell, name: str | None) -> None:
    """Raise RM113 for a public base that is known to bring another Python than the cell's wheels are locked for.

    Nothing is asked for it, so that a dry run is refused, too.

    Args:
        name: reference of the base as a person named it; None for the cell's own.
    """
    if name is None:
        return
    bare = name.removeprefix("docker.io/").removeprefix("library/").partition("@")[0]
    known = PUBLIC.get(bare.partition(":")[0]) or TAGGED.get(bare.removesuffix("-slim"))
    if known is not None:
        _refuse(cell, name, DISTRIBUTIONS[known], why=f"its distribution is {known}")


def refuse_held(cell: Cell, client: docker.DockerClient, other: OtherBase) -> None:
    """Raise RM113 where the base that the engine holds brings another Python than the cell's wheels are locked for.

    Args:
        other: the base, which the engine has.
    """
    if bound(cell):
        _refuse(cell, other.name, python_of(client, other.counted), why="read from the image")


def bound(cell: Cell) -> bool:
    """Return whether a wheel of the cell runs on its Python version alone."""
    digits = cell.python.replace(".", "")
    return any(f"-cp{digits}-cp{digits}" in file for file, _ in cell.wheels)


def _refuse(cell: Cell, name: str, python: str | None, *, why: str) -> None:
    if python in (None, cell.python) or not bound(cell):
        return
    raise RocmatrixError(
        "RM113",
        what=f"{name} brings Python {python}, and the wheels of {cell.name} are locked for {cell.python}",
        where="--base",
        why=why,
        next=f"Take a base with Python {cell.python}, such as {cell.base.image}, or ask for --python {python}.",
    )


def python_of(client: docker.DockerClient, image: str) -> str | None:
    """Return the version of the Python that an image holds or its distribution brings; None where neither shows it.

    Nothing of the image is run: a container is made, looked into, and removed.

    Args:
        image: reference or id of an image that the engine has.
    """
    with suppress(*engine.failures()):
        container = client.containers.create(image, ["true"], labels=orphan_cleanup.label())
        try:
            return _python_in(container)
        finally:
            container.remove(force=True)
    return None


def _python_in(container: docker.models.containers.Container) -> str | None:
    with suppress(*engine.failures()):
        about = container.get_archive("/usr/bin/python3")[1] or {}
        if found := _LINK.match(str(about.get("linkTarget"))):
            return found[1]
    with suppress(KeyError, tarfile.TarError):  # the engine's failures end in `python_of`
        packed = io.BytesIO(b"".join(container.get_archive("/usr/lib/os-release")[0]))
        with tarfile.open(fileobj=packed) as archive:
            text = archive.extractfile("os-release")
            named = _CODE_NAME.search(text.read().decode(errors="replace")) if text else None
        return DISTRIBUTIONS.get(named[1]) if named else None
    return None
