"""What only the whole of a file shows: that it is made for NVIDIA's cards alone, or for AMD's and gives none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rocmatrix.doctor.environment.intent import file_name, means_amd, named_for_amd
from rocmatrix.doctor.environment.launch import Launch
from rocmatrix.doctor.environment.lint_input import FileFinding, Subject
from rocmatrix.doctor.environment.packages.installs import installs
from rocmatrix.doctor.environment.rules import Severity

Row = tuple[Subject, FileFinding]
_NVIDIA_NAME = re.compile(r"nvidia|cuda|(?<![a-z])cu1[12]\d|tensorrt|\bcpu\b|intel|vulkan", re.IGNORECASE)
_NVIDIA_IMAGE = re.compile(r"(?:^|/)nvidia/cuda|nvcr\.io/|[:_.-]cu(?:da)?-?1\d", re.IGNORECASE)
_CUDA_INDEX = re.compile(r"/whl/(?:nightly/)?(cu1\d\d)")
_ROCM_IMAGE = re.compile(r"^(?:docker\.io/)?rocm/|rocm", re.IGNORECASE)
_FOR_BUILDS = re.compile(r"exporter|dev-|docs|build|wheel|cli", re.IGNORECASE)  # images that also serve without a card
_INSTALLING = (".txt", ".in", ".toml", ".yml", ".yaml", ".sh")  # files that list packages, or install them
_BRINGS_TORCH = {
    "torch": "on Linux the default package index serves torch for CUDA, which sees no AMD card",
    **dict.fromkeys(
        ("vllm", "sglang", "xformers"), "of the default package index it brings torch for CUDA, which sees no AMD card"
    ),
}
_OF_AMD = ("HSA_", "ROCR_", "HIP_", "PYTORCH_ROCM", "PYTORCH_HIP", "MIOPEN_")
_ROCM_INDEX = re.compile(r"/whl/(?:nightly/)?rocm\d")
_NEVER_EMPTY = ("HSA_OVERRIDE_GFX_VERSION", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
_LISTS = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
_VARIABLES = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")


def found(subjects: Sequence[Subject]) -> Iterator[Row]:
    """Yield findings that hold for a file as a whole, each with the subject that shows it."""
    for_amd = any(means_amd(subject) for subject in subjects)
    if not for_amd and not any(_NVIDIA_NAME.search(file_name(subject)) for subject in subjects):
        for subject in subjects:
            yield from ((subject, note) for note in _for_nvidia(subject))
            yield from ((subject, note) for note in _from_pypi(subject))
    for subject in subjects:
        yield from ((subject, note) for note in _variables(subject))
        yield from ((subject, note) for note in (*_empty(subject), *_hidden(subject)))
        if for_amd and not means_amd(subject):
            yield from ((subject, note) for note in _moving(subject))
    yield from _no_devices(subjects)


def _for_nvidia(subject: Subject) -> Iterator[FileFinding]:
    """Yield what asks for NVIDIA's cards; a file of theirs is no mistake, so each is a note."""
    request = next(_requests(subject), None)
    if request is not None:
        yield FileFinding(
            rule="nvidia-alone", where=request[0], what=request[1], severity="note",
            truth="it is made for NVIDIA's cards: on a host with AMD cards the engine refuses it, or no card is found",
            instead="devices /dev/kfd and /dev/dri in place of the driver, on an image or index for ROCm",
        )  # fmt: skip


def _requests(subject: Subject) -> Iterator[tuple[str, str]]:
    launch, where = subject.launch, subject.where or subject.name
    if launch is not None:
        where = launch.where
        if "nvidia" in launch.drivers:
            yield launch.drivers_at or where, "driver or runtime nvidia"
        elif launch.gpus is not None:
            yield where, f"--gpus {launch.gpus}"
        elif any("nvidia" in device for device in launch.devices):
            yield where, "a device of nvidia.com"
    image = subject.image or (launch.image if launch else "")
    if _NVIDIA_IMAGE.search(image) and "$" not in image:
        yield subject.where or where, image
    for command in subject.commands:
        if "install" in command.text and (index := _CUDA_INDEX.search(command.text)):
            yield command.where, f"the index {index[1]}"
            return


def _from_pypi(subject: Subject) -> Iterator[FileFinding]:
    """Yield torch, or what brings it along, of a list or script that names no index and no maker of cards."""
    where_listed = file_name(subject).endswith(_INSTALLING) and subject.image is None and subject.launch is None
    if not where_listed or subject.variables or _NVIDIA_NAME.search(subject.name.rpartition("/")[2]):
        return
    rows = [(command.where, one) for command in subject.commands for one in installs(command)]
    if any(one.rocm is not None or one.indexed for _, one in rows if one.name == "torch"):
        return
    for where, one in sorted(rows, key=lambda row: row[1].name != "torch"):
        if one.name in _BRINGS_TORCH and one.rocm is None and not one.indexed:
            yield FileFinding(
                rule="torch-from-default-index", where=where, what=f"{one.name} without an index",
                severity="note", truth=_BRINGS_TORCH[one.name],
                instead="for AMD cards: install torch first, with --index-url "
                "https://download.pytorch.org/whl/rocmX.Y (uv: a source for torch in tool.uv.sources)",
            )  # fmt: skip
            return


def _variables(subject: Subject) -> Iterator[FileFinding]:
    """Yield variables of NVIDIA's runtime where a card of AMD is given; void and nothing hide a card, so they stay."""
    launch = subject.launch
    if launch is None or not any("kfd" in device for device in launch.devices):
        return
    for row in subject.variables:
        if row.name in _VARIABLES and row.value not in ("", "void", "none"):
            yield FileFinding(
                rule="nvidia-variable", where=row.where, what=f"{row.name}={row.value}", severity="note",
                truth="NVIDIA's container runtime alone reads it; for AMD cards the devices decide",
                instead="leave it out; ROCR_VISIBLE_DEVICES chooses among AMD cards",
            )  # fmt: skip


def _empty(subject: Subject) -> Iterator[FileFinding]:
    """Yield variables of a service that are the caller's, without a default: Compose sets them to nothing."""
    for row in subject.variables if " service " in subject.name else ():
        if row.name in _NEVER_EMPTY and re.fullmatch(r"\$\{?\w+\}?", row.value):
            yield FileFinding(
                rule="empty-when-unset", where=row.where, what=f"{row.name}={row.value}", severity="note",
                truth="where the caller has not set it, Compose sets it to nothing, which is not the same as unset: no "
                "card is found",
                instead=f"{row.name} alone, which takes the caller's value if there is one, or a file of its own",
            )  # fmt: skip


def _hidden(subject: Subject) -> Iterator[FileFinding]:
    """Yield an empty list of cards, for a container that is given some."""
    launch = subject.launch
    for row in subject.variables if launch is not None and any("kfd" in one for one in launch.devices) else ():
        if row.name in _LISTS and row.value == "":
            hides = row.name == "ROCR_VISIBLE_DEVICES"
            yield FileFinding(
                rule="cards-hidden", where=row.where, what=f"{row.name}=", severity="warning" if hides else "note",
                truth="an empty list hides every card from ROCr" if hides
                else "with an empty list torch counts no card, unless another list comes before it",
                instead=f"leave {row.name} out, or name the cards",
            )  # fmt: skip


def _moving(subject: Subject) -> Iterator[FileFinding]:
    """Yield an image next to those for AMD whose tag moves."""
    image = subject.launch.image if subject.launch is not None else ""
    _, _, tag = image.rpartition("/")[2].partition(":")
    fixed = not (" service " in subject.name and "/" in image) or re.search(r"[$@]|^localhost|^\.", image)
    if not fixed and (not tag or re.match(r"(?:latest|nightly|main|master|edge|dev)(?:-[a-z]+)*$", tag)):
        yield FileFinding(
            rule="image-moves", where=subject.where or subject.name, what=image, severity="note",
            truth=f"{tag or 'latest (no tag is given)'} is another image with every release",
            instead="a tag that names the release, or a digest",
        )  # fmt: skip


def _no_devices(subjects: Sequence[Subject]) -> Iterator[Row]:
    """Yield starts of ROCm images without a card, and a compose file for AMD in which no service is given one."""
    launches = [(one, one.launch) for one in subjects if one.launch is not None]
    given = any(_gives(launch) for _, launch in launches)
    for subject, launch in launches:
        image = subject.image or launch.image
        reported = any(note.rule == "no-devices-given" for note in subject.notes)
        if (_ROCM_IMAGE.search(image) or (not given and _set_for_amd(subject))) and not _gives(launch) and not reported:
            # a command may only compile, and a service next to those with a card may only load files
            alone = not given and (" service " in subject.name or launch.runner == "podman")
            yield (
                subject,
                _without_card(launch.where, image, "warning" if alone and not _FOR_BUILDS.search(image) else "note"),
            )
    built = next(((one, launch) for one, launch in launches if not launch.image or one.image is None), None)
    if built is not None and not given and " service " in built[0].name and named_for_amd(built[0]):
        yield built[0], _without_card(built[1].where, f"no service of {file_name(built[0])}", "note")


def _set_for_amd(subject: Subject) -> bool:
    """Return whether a service that names its image sets what an AMD card alone has a use for."""
    named = subject.launch is not None and bool(subject.launch.image) and " service " in subject.name
    return named and any(row.name.startswith(_OF_AMD) or _ROCM_INDEX.search(row.value) for row in subject.variables)


def _gives(launch: Launch) -> bool:
    """Return whether a start hands over a card, or may do so by what is not in the file."""
    return bool(launch.devices or launch.privileged or launch.drivers or launch.gpus is not None or launch.partial)


def _without_card(where: str, what: str, severity: Severity) -> FileFinding:
    return FileFinding(
        rule="no-devices-given", where=where, what=what, severity=severity,
        truth="a container for ROCm that is given neither /dev/kfd nor /dev/dri finds no card",
        instead="devices: [/dev/kfd, /dev/dri] (--device /dev/kfd --device /dev/dri), unless another file adds them",
    )  # fmt: skip
