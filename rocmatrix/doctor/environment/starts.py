"""How a container is started on an AMD card: groups by name and number, drivers of another maker, tags that move."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmatrix.doctor.environment.files import instructions
from rocmatrix.doctor.environment.intent import means_amd
from rocmatrix.doctor.environment.launch import Launch
from rocmatrix.doctor.environment.lint_input import FileFinding, Subject

# images whose list of groups has no render
_WITHOUT_RENDER = re.compile(
    r"^(?:docker\.io/)?(?:library/)?(?:ollama/ollama|python|ubuntu|debian|alpine|fedora|nvidia/cuda|intel/)[\w./-]*(?::|$)"
)
_GROUPS = re.compile(r"\b(?:render|video)\b")
_BY_AMD = re.compile(r"^(?:docker\.io/)?rocm/")  # AMD's own images have the group
_FOR_AMD = re.compile(r"^(?!\./|stage).*(?:rocm|(?<![a-z])amd(?!64))", re.IGNORECASE)
_OF_ROCM = re.compile(r"^(?:docker\.io/)?rocm/|rocm", re.IGNORECASE)
# tags that name no release: without a number (latest-gpu, rocm, server-rocm), or latest at the end (rocm6.4-latest)
_MOVES = re.compile(r"^[a-z]+(?:[-_.][a-z]+)*$|-latest$", re.IGNORECASE)
_DRIVERS = ("nvidia", "amd", "cdi")
_ROOT = (None, "", "0", "root", "0:0", "root:root")
# programs that hand no batches over shared memory
_SERVERS = re.compile(
    r"ollama|llama[.-]?(?:cpp|swap|server)|whisper[.-]?cpp|rocm-terminal|device-plugin|exporter|webui"
)


def found(subject: Subject) -> Iterator[FileFinding]:
    """Yield what is wrong with how a subject is started, and images whose tag moves."""
    for image in () if subject.inherits else _images(subject):  # of a stage, its base was reported already
        yield from _moving(subject, image)
    yield from _user_of_image(subject)
    launch = subject.launch
    if launch is not None:
        yield from _drivers(launch)
        yield from _volumes(launch)
        yield from instructions.other_processor(f"--platform={launch.platform} {launch.image}", launch.where)
        if launch.for_amd and not launch.privileged:
            yield from _groups(subject, launch)
        if launch.for_amd:  # a privileged container has the nodes, and their groups count for its user all the same
            yield from _numbers_of_one_host(launch)
        if launch.for_amd and launch.shared_memory is not None and launch.ipc == "host":
            yield FileFinding(
                rule="shm-size-without-effect", where=launch.line_of("shm_size"), severity="note",
                what=f"shm_size {launch.shared_memory}, ipc host",
                truth="with ipc: host the container has the host's /dev/shm, and its size is that of the host",
                instead="one of the two: shm_size alone keeps the container's memory its own",
            )  # fmt: skip


def needs_shared_memory(image: str) -> bool:
    """Return whether programs of an image usually hand data over /dev/shm."""
    return not _SERVERS.search(image)


def _images(subject: Subject) -> Iterator[str]:
    """Yield the image of a subject, and that of its start where both are given: Compose pulls it before it builds."""
    yield subject.image or ""
    image = subject.launch.image if subject.launch is not None else ""
    if image != subject.image and "/" in image and not image.startswith("localhost"):
        yield image


def _moving(subject: Subject, image: str) -> Iterator[FileFinding]:
    _, _, tag = image.rpartition("/")[2].partition(":")
    fixed = "$" in image or "@" in image or ("/" not in image and not tag)  # without both it is a stage, or built here
    moving = (not tag or bool(_MOVES.search(tag))) and not fixed
    path = image.removeprefix("docker.io/")
    if moving and _FOR_AMD.search(path) and not image.startswith(("a ", "the ", "development ")):
        yield FileFinding(
            rule="image-moves", where=subject.where or (subject.launch.where if subject.launch else subject.name),
            what=image, severity="note",
            truth=f"{tag or 'latest (no tag is given)'} is another image with every release, with other versions in it",
            instead="a tag that names the release, or a digest",
        )  # fmt: skip


def _user_of_image(subject: Subject) -> Iterator[FileFinding]:
    """Yield a user of a Dockerfile for AMD cards that nothing there puts into the groups of the device nodes."""
    outside = subject.launch is None and subject.user not in _ROOT and "$" not in (subject.user or "")
    if outside and means_amd(subject) and not any(_GROUPS.search(command.text) for command in subject.commands):
        yield FileFinding(
            rule="user-without-groups", where=subject.where or subject.name, what=f"USER {subject.user}",
            severity="note",
            truth="that user is in none of the groups that own /dev/kfd and /dev/dri, unless the start adds them",
            instead="--group-add with the numbers of the host's groups render and video, where it is started",
        )  # fmt: skip


def _drivers(launch: Launch) -> Iterator[FileFinding]:
    of_amd = launch.for_amd or bool(_OF_ROCM.search(launch.image))
    for driver in launch.drivers:
        known = driver in _DRIVERS
        if driver == "nvidia" and of_amd:
            truth = "it asks for NVIDIA's container runtime; on a host with AMD cards the engine refuses to start this"
        elif not known:
            truth = f"the engine has no driver of the name {driver}, and does not start the container"
        else:
            continue
        yield FileFinding(
            rule="driver-of-another-maker", where=launch.drivers_at or launch.where,
            what=f"driver or runtime {driver}", severity="error", truth=truth,
            instead="devices: [/dev/kfd, /dev/dri], or runtime: amd with AMD's container toolkit",
        )  # fmt: skip


def _volumes(launch: Launch) -> Iterator[FileFinding]:
    sources = [volume.split(":")[0].rstrip("/") for volume in launch.volumes]
    for source in sources:
        node = re.match(r"/dev/(?:kfd|dri)(?:/|$)", source)
        if node and not launch.privileged and not launch.partial and not _has(launch, source):
            yield FileFinding(
                rule="device-as-volume", where=launch.line_of(source), what=source, severity="error",
                truth="a mount shows the node, and the container is not allowed to open it",
                instead=f"devices: [{source}] (--device {source})",
            )  # fmt: skip
        if re.match(r"/opt/rocm(?:-[\d.]+)?$", source):
            yield FileFinding(
                rule="rocm-of-the-host", where=launch.line_of(source), what=source, severity="note",
                truth="the host's ROCm hides that of the image, which its programs were built with; where the releases "
                "differ, libraries are missing or fail",
                instead="the ROCm of the image; a container needs the host's driver alone",
            )  # fmt: skip


def _has(launch: Launch, node: str) -> bool:
    return any(
        device.startswith("amd.com/") or node.startswith(device.rstrip("/")) or device.startswith(node)
        for device in launch.devices
    )


def _groups(subject: Subject, launch: Launch) -> Iterator[FileFinding]:
    groups = set(launch.groups)
    image = subject.image or launch.image
    if "render" in groups and not _BY_AMD.search(image):
        absent = bool(_WITHOUT_RENDER.search(image))
        yield FileFinding(
            rule="group-by-name", where=launch.line_of("render", "group_add"), what="group render by name",
            severity="warning" if absent else "note",
            truth="a name is looked up in the image: where it has no such group the container does not start; where "
            "it has, the number may differ from the host's",
            instead="the number that `getent group render` prints on the host",
        )  # fmt: skip
    numbers = any(group.isdecimal() or re.search(r"[$`]", group) for group in groups)
    user = launch.user if launch.user is not None else subject.user
    root = user in _ROOT and user is not None  # None: the image decides, and what it decides is not known here
    if groups and not root and not numbers and not groups & {"render", "keep-groups"} and not launch.partial:
        yield FileFinding(
            rule="render-group-missing", where=launch.groups_at or launch.where,
            what=f"user {user or 'of the image'}, groups {' '.join(sorted(groups))}",
            severity="warning" if user else "note",
            truth="/dev/kfd and the nodes renderD* belong to the group render on current distributions"
            + ("" if user else "; root opens them without it, another user of the image does not"),
            instead="the host's number of render, in addition to video",
        )  # fmt: skip


def _numbers_of_one_host(launch: Launch) -> Iterator[FileFinding]:
    if launch.fixed_groups:
        yield FileFinding(
            rule="group-number-of-one-host", where=launch.groups_at or launch.where,
            what=f"group {' '.join(launch.fixed_groups)}", severity="note",
            truth="the numbers of render and video differ from host to host: with those of another host the container "
            "starts, and a user other than root cannot open the card",
            instead="a variable with the output of `getent group render | cut -d: -f3` (${RENDER_GID:?} in Compose)",
        )  # fmt: skip
