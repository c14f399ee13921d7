"""A label that binds an image's other labels to its layers and settings: an image derived from it inherits a seal that
does not fit.

It is no signature: whoever can write labels can make a new seal. It separates an image as it was built from one
that a user derived from it, so that the latter does not count as up to date. `prove` checks what an image holds.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import docker

LABEL = "org.rocmatrix.seal"
# What decides how a container of the image runs. Engines differ in whether they tell what is empty.
SETTINGS = (
    "User", "Env", "Entrypoint", "Cmd", "WorkingDir", "Volumes", "ExposedPorts", "Healthcheck", "OnBuild", "Shell",
    "StopSignal", "Labels",
)  # fmt: skip


def of(attributes: Mapping[str, Any]) -> str:
    """Return the seal of an image that the engine describes with `attributes`, as `docker image inspect` has them."""
    config = attributes.get("Config") or {}
    settings = {name: config[name] for name in SETTINGS if config.get(name)}
    settings["Labels"] = {name: value for name, value in (config.get("Labels") or {}).items() if name != LABEL}
    about = {"layers": attributes["RootFS"]["Layers"], "settings": settings}
    return hashlib.sha256(json.dumps(about, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def holds(attributes: Mapping[str, Any]) -> bool:
    """Whether an image carries a seal, and it is that of its own layers and settings."""
    labels = (attributes.get("Config") or {}).get("Labels") or {}
    return labels.get(LABEL) == of(attributes)


def put(client: docker.DockerClient, tag: str) -> str:
    """Seal the image behind `tag`: a label more and no layer, so the same files under a new id. Sealed ones stay.

    Return the id of the sealed image: the tag may be moved meanwhile. Raises docker.errors.BuildError or APIError.
    """
    found = client.images.get(tag)
    if holds(found.attrs):
        return str(found.id)
    dockerfile = io.BytesIO(f"FROM {found.id}\n".encode())
    made, _ = client.images.build(fileobj=dockerfile, tag=tag, labels={LABEL: of(found.attrs)}, rm=True)
    return str(made.id)
