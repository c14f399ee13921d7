"""Kubernetes manifests as subjects, and what is wrong with how they ask for an AMD card.

Templates of Helm are no YAML before they are rendered: RM311 names the line, `helm template` renders them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from rocmatrix.doctor.environment.dockerfile import installed, read_text
from rocmatrix.doctor.environment.lint_input import Assignment, Command, FileFinding, Fix, Subject
from rocmatrix.runtime.errors import RocmatrixError

AMD, NVIDIA = "amd.com/gpu", "nvidia.com/gpu"
# images that look after cards and compute on none
_INFRASTRUCTURE = re.compile(
    r"device-plugin|labell?er|operator|exporter|test-runner|config-manager|driver|kmm|node-", re.IGNORECASE
)
_NVIDIA_NAME = re.compile(r"nvidia|cuda", re.IGNORECASE)
_POD_KEYS = ("containers", "initContainers")
_STARTERS = ("Launcher", "headGroupSpec")  # of an MPIJob and a RayCluster: pods that start others, and may have no card
_ADVICE = (
    "Correct the named line; `docker compose config` checks a compose file, and `helm template` or `kubectl kustomize` "
    "renders a template first."
)


def documents(path: Path) -> list[yaml.Node]:
    """Return the documents of a YAML file. Raises RM310 where it cannot be read, RM311 where it is not YAML or too
    deeply nested."""
    try:
        return [node for node in yaml.compose_all(read_text(path), Loader=yaml.SafeLoader) if node is not None]
    except (yaml.YAMLError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise RocmatrixError("RM311", what=what, where=str(path), next=_ADVICE) from error


def repeated_keys(path: Path) -> Counter[str]:
    """Return how often a key is given again in its own mapping, by name. Raises RM310, RM311."""
    found: Counter[str] = Counter()
    for node in _nodes(documents(path)):
        names = Counter(text(key) for key, _ in _pairs(node) if isinstance(key, yaml.ScalarNode))
        found += names - Counter(names.keys())
    return found


def of_manifests(path: Path) -> tuple[Subject, ...]:
    """Return the containers of every pod in a file of Kubernetes manifests. Raises RM310, RM311."""
    roots = documents(path)
    starters = [items(node)[name] for node in _nodes(roots) for name in _STARTERS if name in items(node)]
    starting = {line_of(path, container["image"]) for pod in _pods(starters) for container in _listed(pod)}
    found = (subject for pod in _pods(roots) for subject in _of_pod(path, pod))
    return tuple(
        replace(one, notes=tuple(note for note in one.notes if note.rule != "k8s-gpu-not-requested"))
        if one.where in starting else one
        for one in found
    )  # fmt: skip


def _listed(pod: Mapping[str, yaml.Node]) -> Iterator[Mapping[str, yaml.Node]]:
    """Yield the containers of a pod that name an image."""
    for key in _POD_KEYS:
        yield from (container for node in members(pod.get(key)) if "image" in (container := items(node)))


def _pods(roots: Sequence[yaml.Node]) -> Iterator[Mapping[str, yaml.Node]]:
    """Yield every mapping that lists containers: a pod's spec, in whatever kind of object."""
    for node in _nodes(roots):
        own = items(node)
        if isinstance(own.get("containers"), yaml.SequenceNode):
            yield own


def _nodes(roots: Sequence[yaml.Node]) -> Iterator[yaml.Node]:
    """Yield every node in the order of the text, once: aliases of aliases would multiply with each level."""
    left, seen = list(reversed(roots)), set[int]()
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        left += reversed([*items(node).values(), *members(node)])


def _of_pod(path: Path, pod: Mapping[str, yaml.Node]) -> Iterator[Subject]:
    for container in _listed(pod):
        yield _container(path, pod, container)


def _container(path: Path, pod: Mapping[str, yaml.Node], container: Mapping[str, yaml.Node]) -> Subject:
    image, where = text(container["image"]), f"{path}:{container['image'].start_mark.line + 1}"
    variables = tuple(variables_of(path, container.get("env")))
    words = [text(row) for key in ("command", "args") for row in members(container.get(key))]
    command = Command(text=" ".join(words), where=where)
    own, shared = items(container.get("securityContext")), items(pod.get("securityContext"))
    privileged = text(own.get("privileged")) == "true"
    paths = [text(items(items(row).get("hostPath")).get("path")) for row in members(pod.get("volumes"))]
    user = text(own.get("runAsUser") or shared.get("runAsUser")) or None
    groups = tuple(text(row) for row in members(shared.get("supplementalGroups")))
    resources = _resources(container)
    by_hand = privileged and not {"/dev/kfd", "/dev/dxg"}.isdisjoint(paths)  # dxg: the card of WSL, without a plugin
    notes = tuple(_gpu_notes(path, container, image, variables, by_hand))
    for_card = AMD in resources["limits"]
    notes += tuple(_mounted(path, pod, container)) if not privileged else ()
    notes += tuple(_pod_notes(path, pod, container, user=user, groups=groups)) if for_card else ()
    return Subject(
        name=f"{path} container {text(container.get('name')) or image}",
        variables=variables,
        commands=(command,) if words else (),
        pairs=tuple(installed(command.text, where)) if words else (),
        image=image,
        where=where,
        for_amd=for_card,
        notes=notes,
    )


def _resources(container: Mapping[str, yaml.Node]) -> dict[str, dict[str, yaml.Node]]:
    resources = items(container.get("resources"))
    return {key: items(resources.get(key)) for key in ("limits", "requests")}


def _gpu_notes(
    path: Path, container: Mapping[str, yaml.Node], image: str, variables: tuple[Assignment, ...], by_hand: bool
) -> Iterator[FileFinding]:
    """Yield what is wrong with the resources that a container asks for."""
    rocm = bool(re.search(r"rocm", image, re.IGNORECASE)) or any(
        row.name.startswith(("HSA_", "ROCR_", "HIP_", "PYTORCH_ROCM")) for row in variables
    )
    yield from _of_nvidia(path, container, image, rocm=rocm)
    yield from _counts(path, container)
    yield from _device_notes(path, container, image, rocm=rocm, by_hand=by_hand)


def _of_nvidia(path: Path, container: Mapping[str, yaml.Node], image: str, *, rocm: bool) -> Iterator[FileFinding]:
    """Yield NVIDIA's resource where the image is for ROCm, or where it is the only one."""
    resources = _resources(container)
    limits = resources["limits"]
    for section in resources.values():
        if NVIDIA in section and rocm:
            line = line_of(path, section[NVIDIA])
            yield FileFinding(
                rule="k8s-nvidia-resource", where=line, what=f"{NVIDIA} for {image}", severity="error",
                truth="the resource is NVIDIA's: no node with AMD cards offers it, and the pod stays pending",
                instead=f"{AMD}",
                fix=None if AMD in section else Fix(where=line, before=NVIDIA, after=AMD),  # a key stands once
            )  # fmt: skip
    if NVIDIA in limits and not rocm and AMD not in limits and not _NVIDIA_NAME.search(path.name):
        yield FileFinding(
            rule="nvidia-alone", where=line_of(path, limits[NVIDIA]), what=NVIDIA, severity="note",
            truth="it is made for NVIDIA's cards: no node with AMD cards offers it, and the pod stays pending",
            instead=f"{AMD}, with an image for ROCm",
        )  # fmt: skip


def _counts(path: Path, container: Mapping[str, yaml.Node]) -> Iterator[FileFinding]:
    """Yield counts of cards that the API server refuses: without a limit, unequal, or no whole number."""
    limits, requests = _resources(container).values()
    if AMD in requests and AMD not in limits:
        yield FileFinding(
            rule="k8s-gpu-without-limit", where=line_of(path, requests[AMD]), what=f"requests {AMD}", severity="error",
            truth="an extended resource has to be in limits; the API server refuses the pod",
            instead=f"put {AMD} into limits (requests may repeat it)",
        )  # fmt: skip
    if AMD in requests and AMD in limits and text(requests[AMD]) != text(limits[AMD]):
        yield FileFinding(
            rule="k8s-gpu-without-limit", where=line_of(path, requests[AMD]), severity="error",
            what=f"requests {text(requests[AMD])}, limits {text(limits[AMD])}",
            truth="requests and limits of an extended resource have to be equal", instead="give limits alone",
        )  # fmt: skip
    if AMD in limits and not re.fullmatch(r"\d+", text(limits[AMD])) and not re.search(r"\{\{|\$", text(limits[AMD])):
        yield FileFinding(
            rule="k8s-gpu-fraction", where=line_of(path, limits[AMD]), severity="error",
            what=f"{AMD}: {text(limits[AMD])}",
            truth="cards are given as whole numbers", instead="1, or partitions of an Instinct card",
        )  # fmt: skip


def _device_notes(
    path: Path, container: Mapping[str, yaml.Node], image: str, *, rocm: bool, by_hand: bool
) -> Iterator[FileFinding]:
    """Yield a card that is not requested, and nodes of cards that are mounted in addition or by hand."""
    limits, requests = _resources(container).values()
    here = f"{path}:{container['image'].start_mark.line + 1}"
    if (
        rocm
        and not by_hand
        and not _INFRASTRUCTURE.search(image)
        and not any(name.startswith(("amd.com/", "nvidia.com/")) for name in (*limits, *requests))
    ):
        yield FileFinding(
            rule="k8s-gpu-not-requested", where=here, what=image, severity="warning",
            truth="without amd.com/gpu in its limits a container gets no card from the device plugin",
            instead="resources: {limits: {amd.com/gpu: 1}}",
        )  # fmt: skip
    mounted = [text(items(row).get("mountPath")) for row in members(container.get("volumeMounts"))]
    if AMD in limits and "/dev/kfd" in mounted:
        yield FileFinding(
            rule="k8s-device-twice", where=here, what=f"{AMD} and a hostPath at /dev/kfd", severity="note",
            truth="the device plugin gives the nodes of its cards; the mount adds nodes that the pod may not open",
            instead=f"{AMD} in limits alone",
        )  # fmt: skip
    if by_hand and not limits.get(AMD) and "/dev/dxg" not in mounted:
        yield FileFinding(
            rule="k8s-device-by-hand", where=here, what="privileged with hostPath /dev/kfd", severity="note",
            truth="the scheduler does not count the card: two such pods share it, and the container has root's rights",
            instead="the device plugin and amd.com/gpu in limits",
        )  # fmt: skip


def _mounted(path: Path, pod: Mapping[str, yaml.Node], container: Mapping[str, yaml.Node]) -> Iterator[FileFinding]:
    """Yield the nodes of a card that are mounted alone, without anything that gives the container the device."""
    volumes = {text(items(row).get("name")): text(items(items(row).get("hostPath")).get("path"))
               for row in members(pod.get("volumes"))}  # fmt: skip
    given = {name for section in _resources(container).values() for name in section if "/" in name}
    if given or "claims" in items(container.get("resources")):
        return
    for row in members(container.get("volumeMounts")):
        node = volumes.get(text(items(row).get("name")), "").rstrip("/")
        if node == "/dev/kfd":
            yield FileFinding(
                rule="k8s-device-mounted", where=line_of(path, row), what=f"hostPath {node}", severity="error",
                truth="a mount shows the node and gives no access: the container's list of devices lacks it, and no "
                "program can open it (Operation not permitted)",
                instead=f"{AMD} in limits, from AMD's device plugin (privileged: true opens all devices of the host)",
            )  # fmt: skip


def _pod_notes(
    path: Path, pod: Mapping[str, yaml.Node], container: Mapping[str, yaml.Node], *, user: str | None,
    groups: tuple[str, ...],
) -> Iterator[FileFinding]:  # fmt: skip
    """Yield what a container with a card lacks of its pod."""
    here = f"{path}:{container['image'].start_mark.line + 1}"
    mounts = [text(items(row).get("mountPath")) for row in members(container.get("volumeMounts"))]
    if "/dev/shm" not in mounts and text(pod.get("hostIPC")) != "true":
        yield FileFinding(
            rule="shared-memory-small", where=here, what=text(container["image"]), severity="note",
            truth="a pod has 64 MB of /dev/shm; data loaders and RCCL between cards need more",
            instead="an emptyDir with medium: Memory and a sizeLimit, mounted at /dev/shm",
        )  # fmt: skip
    if user not in (None, "0") and not groups:
        yield FileFinding(
            rule="groups-not-given", where=here, what=f"runAsUser {user}", severity="warning",
            truth="another user than root is in none of the groups that own the device nodes",
            instead="supplementalGroups with the numbers of the node's groups render and video",
        )  # fmt: skip


def variables_of(path: Path, node: yaml.Node | None) -> Iterator[Assignment]:
    """Yield variables of a map, or of a list of {name, value}; those from secrets have no value and are left out."""
    for row in members(node):
        own = items(row)
        if "name" in own and "value" in own:
            yield Assignment(name=text(own["name"]), value=text(own["value"]), where=line_of(path, own["value"]))
    for name, value in items(node).items():
        yield Assignment(name=name, value=text(value), where=line_of(path, value))


def items(node: yaml.Node | None) -> dict[str, yaml.Node]:
    """Return a mapping's entries by name, those whose key is a text; of another node none."""
    return {text(key): value for key, value in _pairs(node) if isinstance(key, yaml.ScalarNode)}


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return list(node.value) if isinstance(node, yaml.MappingNode) else []


def text(node: Any) -> str:
    """Return a scalar's text; of another node none."""
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def members(node: yaml.Node | None) -> list[yaml.Node]:
    """Return a list's entries; of another node none."""
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def line_of(path: Path, node: yaml.Node) -> str:
    """Return the file and line at which a node begins."""
    return f"{path}:{node.start_mark.line + 1}"
