"""Comparison of an image with a second one, built of the same inputs without a cache: layers and settings.

What is compared are the digests of the layers' content, which a registry's compression does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.containers import engine, engine_lock, label_integrity
from rocmatrix.images import build, buildkit, disk_space
from rocmatrix.images import labels as image_labels
from rocmatrix.images.wheelhouse import default_folder, fetch
from rocmatrix.matrix.matrix import Cell
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.verify import distribution_packages
from rocmatrix.verify.finding import Check, Finding

if TYPE_CHECKING:
    import docker

NAME = "rebuild"
CODE = "RM680"
UNLIKE = (label_integrity.LABEL, image_labels.NIGHT)  # labels that belong to one build


def check(cell: Cell, reference: str, *, root: Path, wheels: Path | None = None) -> Check:
    """Build the image of `cell` once more with no cache, compare, and remove it.

    Raises RM201, RM202, RM204, and what fetching wheels raises.

    Args:
        reference: reference or id of the image that is there.
        root: checkout to build from.
        wheels: folder of the locked wheels; None for the checkout's own.
    """
    with closing(engine.connect(work=True)) as client:
        held = client.images.get(reference).attrs
        labels = (held.get("Config") or {}).get("Labels") or {}
        if other := _other_inputs(client, cell, labels, root):
            return Check(name=NAME, summary="nothing was built", findings=(Finding(code=CODE, what=other),))
        tag = f"{build.tag(cell)}-rebuilt"
        with engine_lock.exclusive(client, tag, waiting=f"another program on this engine builds {tag}"):
            made, packages = _built(
                client, cell, labels, tag=tag, root=root, wheels=wheels or default_folder(root, cell)
            )
        check = compared(held, made)
        if check.findings and (moved := distribution_packages.moved(_packages(client, reference), packages)):
            (finding,) = check.findings
            check = replace(check, findings=(replace(finding, places=(moved, *finding.places)),))
    return check


def _other_inputs(client: docker.DockerClient, cell: Cell, labels: Mapping[str, str], root: Path) -> str:
    """Return why the checkout cannot make this image, empty where it can."""
    if cell.unlocked_because:
        return f"its wheels have no recorded hashes, so a second build may install others: {cell.unlocked_because}"
    base, recorded = labels.get(image_labels.BASE), labels.get(image_labels.BASE_ID)
    there = engine.image(client, base) if base else None
    if base and (there is None or (recorded and there.id != recorded)):
        return f"its base {base} is not on this engine as it was"
    inputs = build.input_hash(cell, root, base=recorded or base, forced=_forced(labels))
    if labels.get(image_labels.INPUTS) == inputs:
        return ""
    return f"it was made of other inputs than this checkout's ({inputs[:12]})"


def _forced(labels: Mapping[str, str]) -> list[str]:
    return [rule for rule in labels.get(image_labels.FORCED, "").split(",") if rule]


def _built(
    client: docker.DockerClient, cell: Cell, labels: Mapping[str, str], *, tag: str, root: Path, wheels: Path
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return what the engine states of the image built anew, and its distribution's packages; it is removed.

    Args:
        labels: labels of the image that is there.
        tag: tag of the image built anew.
        root: checkout to build from.
        wheels: folder of the locked wheels.
    """
    if not labels.get(image_labels.BASE):
        engine.obtain(client, cell.base.reference)  # one that no registry gives is the host's trouble, not the image's
    fetch(cell, wheels)
    argv = _argv(cell, labels, tag=tag, root=root, wheels=wheels)
    log = build.log_file(cell, root).with_name(f"rebuild-{cell.image_name}.log")
    watched = disk_space.of_engine(client)
    try:
        buildkit.run(argv, log=log, watched=watched)
        return client.images.get(tag).attrs, _packages(client, tag)
    except RocmatrixError as error:
        planned = build.Built(tag=tag, inputs=labels[image_labels.INPUTS], argv=tuple(argv))
        raise build.failed(error, planned, client, watched) from error
    finally:
        with suppress(*engine.failures()):
            client.images.remove(tag, force=True)


def _packages(client: docker.DockerClient, image: str) -> Mapping[str, str]:
    return distribution_packages.read(client, image)


def _argv(cell: Cell, labels: Mapping[str, str], *, tag: str, root: Path, wheels: Path) -> list[str]:
    inputs, base, base_id = labels[image_labels.INPUTS], labels.get(image_labels.BASE), labels.get(image_labels.BASE_ID)
    argv = build.buildx_argv(
        cell,
        root=root,
        wheelhouse=wheels,
        inputs=inputs,
        base=base,
        base_id=base_id,
        forced=_forced(labels),
        described={name: labels[name] for name in image_labels.DESCRIBING if name in labels},
    )
    argv = [tag if word == build.tag(cell) else word for word in argv]
    return [*argv[:3], "--no-cache", *argv[3:]]


def compared(held: Mapping[str, Any], made: Mapping[str, Any]) -> Check:
    """Compare two images as the engine describes them: their layers, and the settings that decide how one runs.

    Args:
        held: the image that is there.
        made: the one built anew.
    """
    layers, others = held["RootFS"]["Layers"], made["RootFS"]["Layers"]
    places = [f"{len(layers)} layers, and {len(others)} built anew"] if len(layers) != len(others) else []
    pairs = enumerate(zip(layers, others, strict=False), start=1)
    places += [f"layer {number} ({old})" for number, (old, new) in pairs if old != new]
    mine, new = (settings(each) for each in (held, made))
    places += [f"{name} is {mine.get(name)!r}, built anew {new.get(name)!r}" for name in _unlike(mine, new)]
    findings = (Finding(code=CODE, what="not what the recipe makes again", places=tuple(places)),) if places else ()
    return Check(
        name=NAME, summary=f"{len(layers)} layers and the settings, built anew without a cache", findings=findings
    )


def settings(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an image without the labels that belong to one build, and its time."""
    config = attributes.get("Config") or {}
    found = {name: config[name] for name in label_integrity.SETTINGS if config.get(name)}
    found["Labels"] = {name: value for name, value in (found.get("Labels") or {}).items() if name not in UNLIKE}
    return {**found, "Created": attributes.get("Created")}


def _unlike(mine: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in mine.keys() | new.keys() if mine.get(name) != new.get(name))
