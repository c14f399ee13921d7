"""Another base than the cell's own: as a person names it, or as the image remembers that is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocmatrix.containers import engine
from rocmatrix.images import labels as image_labels
from rocmatrix.runtime.console import say

if TYPE_CHECKING:
    import docker


@dataclass(frozen=True, kw_only=True)
class OtherBase:
    """A base by its name, and its id where the engine was asked: a tag may move."""

    name: str
    id: str | None = None

    @property
    def counted(self) -> str:
        """What stands for it in the hash of an image's inputs."""
        return self.id or self.name


def chosen(client: docker.DockerClient, asked: str | None, held: engine.Image | None) -> OtherBase | None:
    """Return the base as asked for, else that of the image that is there; None for the cell's own.

    The id is looked up, for a tag may have moved. Where the engine has lost a base that the image was made from,
    the recorded id stands. Raises RM204 for one that cannot be had.

    Args:
        asked: reference of another base; None where none was named.
    """
    labels: Mapping[str, str] = held.labels if held else {}
    name = asked or labels.get(image_labels.BASE)
    if not name:
        return None
    if not asked:
        say(f"base: {name}, which this image was made from; --base names another")
    found = engine.image(client, name)
    recorded = labels.get(image_labels.BASE_ID)
    if found is None and name == labels.get(image_labels.BASE) and recorded:
        return OtherBase(name=name, id=recorded)
    return OtherBase(name=name, id=(found or engine.obtain(client, name)).id)
