"""Disk budget of nights: remove what nights made, and nothing else.

An image is a night's own where it bears a tag that only nights give, or where the evidence names it as a night's
build. A label would not do: images that others derive inherit it. An image that has any other tag stays.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Collection, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rocmatrix.containers import engine, engine_lock
from rocmatrix.runtime.console import say

if TYPE_CHECKING:
    import docker

OWN_TAGS = "rocmatrix:night-"
UNTAGGED = "<none>:<none>"
TRIES, PAUSE_SECONDS = 6, 0.5  # of a list that fails while an image goes


@dataclass(frozen=True, kw_only=True)
class Held:
    """An image of the engine. `size` is in bytes and counts layers that it shares with others."""

    id: str
    tags: tuple[str, ...]
    size: int


def own(images: Iterable[Held], recorded: Collection[str]) -> list[Held]:
    """Return the images that a night may remove: its candidates, and its builds that have lost every tag."""
    return [
        image
        for image in images
        if all(tag.startswith(OWN_TAGS) for tag in image.tags) and (image.tags or image.id in recorded)
    ]


def to_remove(mine: Iterable[Held], *, budget: int, needed: Collection[str]) -> list[Held]:
    """Return the images to remove so that the rest fits: untagged ones first, then the largest.

    Args:
        mine: images that a night may remove.
        budget: bytes that they may take together.
        needed: tags whose images stay, even where the rest does not fit then.
    """
    mine = list(mine)
    excess = sum(image.size for image in mine) - budget
    going: list[Held] = []
    for image in sorted(mine, key=lambda image: (bool(image.tags), -image.size)):
        if excess <= 0:
            break
        if not set(image.tags) & set(needed):
            going.append(image)
            excess -= image.size
    return going


def held(client: docker.DockerClient) -> list[Held]:
    """Return every image of the engine, from one answer: another program may remove one between two questions."""
    return [
        Held(
            id=str(each["Id"]),
            tags=tuple(tag for tag in each.get("RepoTags") or () if tag != UNTAGGED),
            size=each["Size"],
        )
        for each in _listed(client)
    ]


def _listed(client: docker.DockerClient) -> list[dict[str, Any]]:
    """Return what the engine lists; queried again where it failed on an image that another program was removing."""
    import docker.errors

    for _ in range(TRIES - 1):
        with suppress(docker.errors.APIError):  # "failed to calculate size of image …: not found"
            return list(client.api.images())
        time.sleep(PAUSE_SECONDS)
    return list(client.api.images())


def make_room(*, budget: int, needed: Collection[str], recorded: Collection[str], builder: str | None) -> int:
    """Remove own images until they fit, then let the own builder's cache have what is left. Return the bytes in use.

    Raises RM201.

    Args:
        budget: bytes for images and cache together.
        needed: tags whose images stay.
        recorded: ids of images that the evidence names as a night's: they may go where they have no tag.
        builder: buildx builder of this user alone, whose cache is pruned; None prunes no cache, as the engine's
            built-in one shares its cache with all users.
    """
    import docker.errors

    with closing(engine.connect(work=True)) as client:
        mine = own(held(client), recorded)
        names = {tag for image in mine for tag in image.tags} - set(needed)
        kept = {*needed, *(name for name in names if engine_lock.is_taken(client, name))}  # other checkouts' nights
        for image in to_remove(mine, budget=budget, needed=kept):
            say(f"budget: removes {', '.join(image.tags) or image.id}, {image.size / 1e9:.1f} GB")
            for reference in image.tags or (image.id,):
                with suppress(docker.errors.APIError):  # a container uses it
                    client.images.remove(reference)
        used = sum(image.size for image in own(held(client), recorded))
    if builder:
        subprocess.run(prune_argv(builder, max(budget - used, 0)), capture_output=True, check=False)
    return used


def prune_argv(builder: str, keep: int) -> list[str]:
    """Return the command that leaves `keep` bytes of the builder's cache."""
    return ["docker", "buildx", "prune", f"--builder={builder}", "--force", f"--keep-storage={keep}"]
