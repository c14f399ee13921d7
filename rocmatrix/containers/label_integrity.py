"""A seal over an image's labels, layers and settings: an image derived from it inherits a seal that does not fit.

It is no signature: whoever can write labels can make a new seal. It separates an image as it was built from one
that a user derived from it, so that the latter does not count as up to date. `prove` checks what an image holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rocmatrix.runtime.errors import RocmatrixError

if TYPE_CHECKING:
    import docker

LABEL = "org.rocmatrix.seal"
# zstd: a layer of 0.9 GB was written in 15 s, by gzip in 68, and is smaller. Engines without containerd's image store,
# which compress nothing here, ignore it. Docker's own media types have no zstd, those of OCI have.
OUTPUT = "type=docker,compression=zstd,oci-mediatypes=true"
EPOCH = 1767225600  # 2026-01-01 UTC: the time of every image, and of all files that its build writes
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
    """Return whether an image carries a seal, and it is that of its own layers and settings."""
    labels = (attributes.get("Config") or {}).get("Labels") or {}
    return labels.get(LABEL) == of(attributes)


def put(client: docker.DockerClient, tag: str, *, builder: str = "default") -> str:
    """Seal the image behind `tag`: a label more and no layer, so the same files under a new id. Sealed ones stay.

    BuildKit does it, which dates the image as `EPOCH` states; the engine's own builder would date it by its clock.
    Return the id of the sealed image: the tag may be moved meanwhile. Raises docker.errors.APIError, and RM202 where
    BuildKit fails or the tag was moved before it was sealed.

    Args:
        tag: tag of the image.
        builder: buildx's name of the BuildKit within the engine: one in a container, which a user may have made the
            default, reads no image of the engine.
    """
    found = client.images.get(tag)
    if holds(found.attrs):
        return str(found.id)
    argv = _argv(tag, of(found.attrs), builder)
    done = subprocess.run(argv, input=f"FROM {tag}\n", capture_output=True, text=True, check=False)
    made = client.images.get(tag)
    if done.returncode or not (holds(made.attrs) and of(made.attrs) == of(found.attrs)):
        why = done.stderr.strip()[-2000:] if done.returncode else f"{tag} was moved to another image meanwhile"
        raise RocmatrixError("RM202", what="the image could not be sealed", where=tag, why=why)
    _remove_unnamed(client, str(found.id))
    return str(made.id)


def _remove_unnamed(client: docker.DockerClient, identity: str) -> None:
    """Remove the image as it was before its seal: an engine without containerd's image store keeps it with no tag.

    It holds on to all layers: the sealed image's bytes would outlast that image's removal.
    """
    import docker.errors

    with contextlib.suppress(docker.errors.DockerException, OSError):  # it is gone, or a container uses it
        if not client.images.get(identity).tags:
            client.images.remove(identity)


def _argv(tag: str, seal: str, builder: str) -> list[str]:
    dated = f"SOURCE_DATE_EPOCH={EPOCH}"
    argv = ["docker", "buildx", "build", f"--builder={builder}", "--output", OUTPUT, "--provenance=false"]
    return [*argv, "--progress=plain", "--build-arg", dated, "--label", f"{LABEL}={seal}", "--tag", tag, "-"]
