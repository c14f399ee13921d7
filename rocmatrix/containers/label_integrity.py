"""A label that binds an image's other labels to its layers and settings: an image derived from it inherits a seal that
does not fit.

It is no signature: whoever can write labels can make a new seal. It separates an image as it was built from one
that a user derived from it, so that the latter does not count as up to date. `prove` checks what an image holds.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rocmatrix.runtime.errors import RocmatrixError

if TYPE_CHECKING:
    import docker

LABEL = "org.rocmatrix.seal"
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
    """Whether an image carries a seal, and it is that of its own layers and settings."""
    labels = (attributes.get("Config") or {}).get("Labels") or {}
    return labels.get(LABEL) == of(attributes)


def put(client: docker.DockerClient, tag: str) -> None:
    """Seal the image behind `tag`: a label more and no layer, so the same files under a new id. Sealed ones stay.

    BuildKit does it, which dates the image as `EPOCH` states; the engine's own builder would date it by its clock.
    Raises docker.errors.APIError, and RM202 where BuildKit fails.
    """
    found = client.images.get(tag)
    if holds(found.attrs):
        return
    done = subprocess.run(
        _argv(tag, of(found.attrs)), input=f"FROM {tag}\n", capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RocmatrixError("RM202", what="the image could not be sealed", where=tag, why=done.stderr.strip()[-2000:])


def _argv(tag: str, seal: str) -> list[str]:
    dated = f"SOURCE_DATE_EPOCH={EPOCH}"
    argv = ["docker", "buildx", "build", "--load", "--provenance=false", "--progress=plain", "--build-arg", dated]
    return [*argv, "--label", f"{LABEL}={seal}", "--tag", tag, "-"]
