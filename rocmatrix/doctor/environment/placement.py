"""What is wrong between an image, what is installed into it and how it is started, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rocmatrix.doctor.environment import starts, whole
from rocmatrix.doctor.environment.launch import Launch
from rocmatrix.doctor.environment.lint import LintFinding
from rocmatrix.doctor.environment.lint_input import FileFinding, Fix, Subject, with_held_commands
from rocmatrix.doctor.environment.packages import (
    addresses,
    folders,
    indexes,
    pairs,
    pinned,
    releases,
    requirement,
    sources,
    system,
    without_rocm,
)
from rocmatrix.doctor.environment.packages.installs import Install, installs
from rocmatrix.doctor.environment.rules import Kind, Severity
from rocmatrix.doctor.environment.shell import quotes
from rocmatrix.matrix.companion import Companion
from rocmatrix.matrix.matrix import Matrix
from rocmatrix.matrix.statement import within

SOURCE = "matrix/companions.yaml; images and indexes as their makers publish them"
_CUDA_IMAGES = re.compile(
    r"(?:^|/)(?:vllm/vllm-openai(?!-rocm)|nvidia/cuda|pytorch/pytorch|nvcr\.io/|huggingface/text-generation-inference)|"
    r"nvcr\.io/|[:_-]cu(?:da)?-?1\d|[:_-](?:gpu-nvidia|cublas|cuda)(?:[-_]|$)|"
    # tags without a suffix are built for CUDA, those for AMD's cards end in rocm
    r"(?:^|/)invoke-ai/invokeai(?:$|:(?!.*(?:rocm|cpu)))|(?:^|/)lmsysorg/sglang(?:$|:(?!.*rocm))"
)
# programs that reach a card through /dev/dri alone: graphics interfaces, and other makers' cards
_WITHOUT_KFD = re.compile(
    r"vulkan|vaapi|openvino|sycl|intel|handbrake|jellyfin|plex|emby|tdarr|transcod|ffmpeg", re.IGNORECASE
)
_OF_AMD = ("HSA_", "ROCR_", "HIP_", "PYTORCH_ROCM")  # what names of variables begin with
_PYTORCH_TAG = re.compile(r"rocm\d+(?:\.\d+){1,2}_(?:ubuntu|centos|rhel)\d+(?:\.\d+)?_py\d")


def misplaced(subjects: Iterable[Subject], matrix: Matrix) -> Iterator[LintFinding]:
    """Yield what is wrong with images, installs and starts of containers, once for each place."""
    seen: set[tuple[str, str, str]] = set()
    for finding in _misplaced(tuple(map(with_held_commands, subjects)), matrix):
        if (finding.rule, finding.where, finding.what) not in seen:
            seen.add((finding.rule, finding.where, finding.what))
            yield finding


def _misplaced(rows: tuple[Subject, ...], matrix: Matrix) -> Iterator[LintFinding]:
    for subject, note in whole.found(rows):
        yield _lint_finding(subject, note)
    for subject in rows:
        listed = tuple(one for command in subject.commands for one in installs(command))
        yield from _of_image(subject)
        yield from (_lint_finding(subject, note) for note in _of_packages(subject, listed, matrix))
        yield from _of_companions(subject, listed, matrix)
        if subject.launch is not None:
            yield from _of_launch(subject, subject.launch)
        yield from (_lint_finding(subject, note) for note in starts.found(subject))
        yield from (_lint_finding(subject, note) for note in subject.notes)


def _of_packages(subject: Subject, listed: Sequence[Install], matrix: Matrix) -> Iterator[FileFinding]:
    yield from indexes.found(subject, listed, matrix)
    yield from addresses.found(subject, matrix)
    yield from folders.found(subject)
    yield from pairs.found(subject, listed, matrix)
    yield from releases.found(subject)
    yield from sources.found(subject)
    yield from pinned.found(subject, listed)
    yield from system.found(subject)
    for command in subject.commands:
        yield from requirement.of_command(command)
        yield from quotes.of_command(command)
    if indexes.refuses_cuda(subject):
        rocm = subject.rocm or releases.rocm_of_image(subject.image)
        kept = [one for one in listed if not without_rocm.is_built(one, subject.commands)]
        yield from without_rocm.found(kept, rocm or next((one.rocm for one in listed if one.rocm), None))


def _lint_finding(subject: Subject, note: FileFinding) -> LintFinding:
    return replace(
        _finding_of(note.rule, subject, note.where, note.what, "conflict", note.severity, note.truth, note.instead),
        fix=note.fix,
    )


def _of_image(subject: Subject) -> Iterator[LintFinding]:
    image, where = subject.image, subject.where or (subject.launch.where if subject.launch else subject.name)
    if image is None:
        return
    tag = image.partition(":")[2]
    if image.startswith("rocm/pytorch:") and re.match(r"rocm[^$]*$", tag) and not _PYTORCH_TAG.match(tag):
        yield _finding_of(
            "image-tag-form", subject, where, image, "invented", "error",
            "tags of rocm/pytorch name ROCm, distribution, Python and torch (rocm6.4_ubuntu22.04_py3.10_pytorch_"
            "release_2.6.0); this one has not all four, so none of that name was published",
            "take a whole tag from hub.docker.com/r/rocm/pytorch/tags",
        )  # fmt: skip
    amd = _of_amd(subject)
    if amd and _CUDA_IMAGES.search(image) and "rocm" not in image:
        yield _finding_of(
            "cuda-image", subject, where, image, "conflict", "error",
            "this image is built for CUDA, and the settings with it are for an AMD card: it finds no card",
            "take the ROCm image of the same project (rocm/vllm, vllm/vllm-openai-rocm, rocm/pytorch)",
        )  # fmt: skip
    graphics = subject.launch is not None and any("dri" in device for device in subject.launch.devices)
    if (amd or graphics) and (bare := re.search(r"(?:^|/)ollama/ollama(?::latest|:[\d.]+)?$", image)):
        finding = _finding_of(
            "ollama-without-rocm", subject, where, image, "conflict", "error",
            "that tag of Ollama holds the libraries of CUDA alone; an AMD card is served by the tags that end in rocm",
            "ollama/ollama:rocm",
        )  # fmt: skip
        plain = image.partition(":")[0] if bare[0].endswith(("ollama", "latest")) else None
        yield replace(finding, fix=Fix(where=where, before=image, after=f"{plain}:rocm")) if plain else finding


def _of_companions(subject: Subject, listed: Sequence[Install], matrix: Matrix) -> Iterator[LintFinding]:
    """Yield companions that a rule of the matrix calls broken with the ROCm of the image or the index."""
    rocm = subject.rocm or next((one.rocm for one in listed if one.rocm), None) or releases.rocm_of_image(subject.image)
    if rocm is None:
        return
    for one in listed:
        companion = next((row for row in matrix.companions if row.package == one.name), None)
        if companion is not None:
            yield from _of_version(subject, one, companion, rocm)
        for rule in companion.rules if companion else ():
            bound = rule.when
            if rule.verdict == "broken" and bound.rocm and not bound.architectures and within(rocm, bound.rocm):
                yield _finding_of(
                    rule.id, subject, one.where, f"{one.name} with ROCm {rocm}", "never built", "error", rule.summary,
                    "./invokew explain names the releases that the package goes with",
                )  # fmt: skip


def _of_version(subject: Subject, one: Install, companion: Companion, rocm: str) -> Iterator[LintFinding]:
    """Yield a companion whose version is that of another ROCm: the newest counts as that of the newest ROCm."""
    by_rocm = [pairing for pairing in companion.versions if pairing.when.rocm]
    mine = next((pairing for pairing in by_rocm if within(rocm, str(pairing.when.rocm))), None)
    if mine is None or (within(one.exact, mine.version) if one.exact else not one.newest or mine is by_rocm[-1]):
        return
    before = by_rocm[: by_rocm.index(mine)]
    # a version of an older ROCm may hold libraries for the newer as well: bitsandbytes 0.49.2 does, up to ROCm 7.2
    older = one.exact is not None and any(within(one.exact, pairing.version) for pairing in before)
    truth = "is the version for an older ROCm, and may have no library" if older else "has no library"
    yield _finding_of(
        "companion-of-another-rocm", subject, one.where, f"{one.name} {one.exact or '(the newest)'} with ROCm {rocm}",
        "never built", "note" if older else "error",
        f"that version {truth} for ROCm {rocm}; {mine.version} has ({mine.evidence.summary})",
        f"pip install '{one.name}{mine.version}'",
    )  # fmt: skip


def _of_launch(subject: Subject, launch: Launch) -> Iterator[LintFinding]:
    yield from _malformed(subject, launch)
    yield from _options(subject, launch)
    if not (launch.privileged or not launch.for_amd or launch.partial or _needs_no_compute(subject, launch)):
        yield from _missing(subject, launch)


def _malformed(subject: Subject, launch: Launch) -> Iterator[LintFinding]:
    """Yield paths of devices that are none."""
    for device in launch.devices:
        if not device.startswith("/dev/") and "=" not in device and "$" not in device:
            whole = f"/dev/{device.strip('/').removeprefix('dev/')}"
            finding = _finding_of(
                "device-path", subject, launch.line_of(device), device, "malformed", "error",
                "device nodes lie below /dev; the engine refuses a path that does not exist", whole,
            )  # fmt: skip
            yield replace(finding, fix=Fix(where=finding.where, before=device, after=whole))


def _options(subject: Subject, launch: Launch) -> Iterator[LintFinding]:
    """Yield options that do not give the card, or give more than it needs."""
    if launch.gpus is not None and (launch.for_amd or "rocm" in launch.image) and "amd" not in launch.drivers:
        yield _finding_of(
            "gpus-option-of-nvidia", subject, launch.line_of("gpus"), f"--gpus {launch.gpus}", "conflict", "warning",
            "--gpus asks for NVIDIA's runtime, and the engine refuses or gives no AMD card; only young engines (Docker "
            "29.3, Podman 6.0, nerdctl 2.3) with AMD's Container Toolkit give AMD cards by it",
            "--device /dev/kfd --device /dev/dri; with that toolkit --runtime=amd --gpus, for Docker 28.3 and newer",
        )  # fmt: skip
    if launch.runner == "podman" and launch.for_amd and not launch.privileged and _loses_groups(launch):
        sure = launch.rootful is False and not launch.groups
        yield _finding_of(
            "podman-without-groups", subject, launch.where, launch.image, "conflict", "warning" if sure else "note",
            "a rootless container loses the groups render and video of its user, and the device nodes stay closed",
            "--group-add keep-groups (with crun), and --security-opt label=disable where SELinux is on",
        )  # fmt: skip
    if launch.privileged and any("kfd" in device or "dri" in device for device in launch.devices):
        yield _finding_of(
            "privileged-with-devices", subject, launch.line_of("privileged"), launch.image or subject.name, "harmful",
            "note",
            "the devices are given, so --privileged adds nothing for ROCm, and opens the whole host to the container",
            "leave privileged out; add the groups video and render where the user is not root",
        )  # fmt: skip


def _needs_no_compute(subject: Subject, launch: Launch) -> bool:
    """Return whether a name states that the container computes nothing, or an image is for CUDA."""
    service = subject.name.rpartition(" ")[2]  # all there is where another file names the image
    named = f"{subject.image or launch.image} {service}"
    of_cuda = _CUDA_IMAGES.search(subject.image or launch.image)
    return bool(_WITHOUT_KFD.search(named) or (of_cuda and not _of_amd(subject)))


_KFD_ALONE = "ROCm opens each card's render node as well; with /dev/kfd alone it finds no card"
_DRI_ALONE = "compute goes through /dev/kfd; with /dev/dri alone ROCm finds no card"


def _nodes(subject: Subject, launch: Launch) -> Iterator[LintFinding]:
    """Yield the node that is missing where one of the two is given; ROCm opens both."""
    kfd = next(filter(_is_kfd, launch.devices), None)
    dri = next((each for each in launch.devices if "dri" in each), None)
    given = dri or kfd
    if given is None or (kfd and dri) or any("$" in device for device in launch.devices):
        return
    rule, missing, truth = (
        ("dri-not-given", "/dev/dri", _KFD_ALONE) if kfd else ("kfd-not-given", "/dev/kfd", _DRI_ALONE)
    )
    image = subject.image or launch.image
    unnamed = not kfd and not _of_amd(subject) and "@" in image and not re.search(r"rocm|hip|:", image.split("@")[0])
    finding = _finding_of(
        rule, subject, launch.line_of(given), " ".join(launch.devices), "conflict", "note" if unnamed else "error",
        truth, f"add --device {missing}" + (", unless the image is one for Vulkan" if unnamed else ""),
    )  # fmt: skip
    yield replace(finding, fix=Fix(where=finding.where, before=given, after=missing, added=True))


def _is_kfd(device: str) -> bool:
    """Return whether a device is /dev/kfd, also with its letters in another order, which another rule reports."""
    return "kfd" in device or sorted(device.removeprefix("/dev/")) == sorted("kfd")


def _missing(subject: Subject, launch: Launch) -> Iterator[LintFinding]:
    """Yield what a container lacks that is to compute on the card: a node, the groups that own it, shared memory."""
    yield from _nodes(subject, launch)
    if launch.user not in (None, "0", "root", "0:0", "root:root") and not launch.groups:
        yield _finding_of(
            "groups-not-given", subject, launch.line_of("user"), f"user {launch.user}", "conflict", "warning",
            "another user than root is in none of the groups that own the device nodes",
            "add the numbers of the host's groups render and video (group_add, --group-add)",
        )  # fmt: skip
    if (
        launch.shared_memory is None
        and launch.ipc != "host"
        and starts.needs_shared_memory(subject.image or launch.image)
    ):
        yield _finding_of(
            "shared-memory-small", subject, launch.where, launch.image or subject.name, "harmful", "note",
            "an engine gives a container 64 MB of /dev/shm; data loaders and RCCL between cards need more",
            "shm_size: 8g (--shm-size 8g), or ipc: host",
        )  # fmt: skip


def _of_amd(subject: Subject) -> bool:
    """Return whether a card of AMD is intended for certain: a node for graphics and --privileged serve others, too."""
    launch = subject.launch
    given = launch is not None and any("kfd" in device for device in launch.devices)
    return subject.for_amd or given or any(row.name.startswith(_OF_AMD) for row in subject.variables)


def _loses_groups(launch: Launch) -> bool:
    """Return whether a start that root does not make hands on none of its user's groups: names and numbers are the
    container's own there."""
    return launch.rootful is not True and not launch.partial and "keep-groups" not in launch.groups


def _finding_of(
    rule: str, subject: Subject, where: str, what: str, kind: Kind, severity: Severity, truth: str, instead: str
) -> LintFinding:
    return LintFinding(
        rule=rule, subject=subject.name, where=where, what=what, kind=kind, severity=severity, truth=truth,
        instead=instead, source=SOURCE,
    )  # fmt: skip
