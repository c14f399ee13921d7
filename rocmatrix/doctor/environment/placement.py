"""What is wrong between an image, what is installed into it and how it is started, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from packaging.requirements import InvalidRequirement, Requirement

from rocmatrix.doctor.environment.dockerfile import INDEX
from rocmatrix.doctor.environment.launch import Launch
from rocmatrix.doctor.environment.lint import LintFinding
from rocmatrix.doctor.environment.lint_input import Command, FileFinding, Fix, Subject
from rocmatrix.doctor.environment.rules import Kind, Severity
from rocmatrix.doctor.environment.scripts import parts
from rocmatrix.matrix.companion import Companion
from rocmatrix.matrix.matrix import Matrix
from rocmatrix.matrix.statement import within

SOURCE = "matrix/companions.yaml; images and indexes as their makers publish them"
_ROCM_TAG = re.compile(r"rocm[-_]?(?P<rocm>\d+\.\d+(?:\.\d+)?)")
_CUDA_IMAGES = re.compile(
    r"(?:^|/)(?:vllm/vllm-openai(?!-rocm)|nvidia/cuda|pytorch/pytorch|nvcr\.io/|huggingface/text-generation-inference)|"
    r"nvcr\.io/|[:_-]cu(?:da)?-?1\d"
)
_PYTORCH_TAG = re.compile(r"rocm\d+(?:\.\d+){1,2}_(?:ubuntu|centos|rhel)\d+(?:\.\d+)?_py\d")
_NO_IMAGE = ("a conda environment", "the extra ")
_TORCHVISION_AHEAD = 15  # torch 2.n goes with torchvision 0.(n + 15)


@dataclass(frozen=True, kw_only=True)
class _Install:
    """One package that pip is asked for. `rocm` is the version of the ROCm index named, "" for another index.

    `extra`: that index is asked next to PyPI (--extra-index-url). `local`: the version itself names ROCm.
    """

    name: str
    exact: str | None
    newest: bool
    rocm: str | None
    where: str
    extra: bool = False
    local: bool = False
    indexed: bool = False


def misplaced(subjects: Iterable[Subject], matrix: Matrix) -> Iterator[LintFinding]:
    """Yield what is wrong with images, installs and starts of containers."""
    for subject in subjects:
        installs = [one for command in subject.commands for one in _installs(command)]
        yield from _of_image(subject)
        yield from _of_installs(subject, installs)
        yield from _of_companions(subject, installs, matrix)
        if subject.launch is not None:
            yield from _of_launch(subject, subject.launch)
        yield from (_lint_finding(subject, note) for note in subject.notes)


def _lint_finding(subject: Subject, note: FileFinding) -> LintFinding:
    return replace(
        _finding_of(note.rule, subject, note.where, note.what, "conflict", note.severity, note.truth, note.instead),
        fix=note.fix,
    )


def _installs(command: Command) -> Iterator[_Install]:
    for words in parts(command.text):
        if "install" not in words or not any(re.fullmatch(r"(?:.*/)?(?:pip[\d.]*|uv)", word) for word in words):
            continue
        rest = words[words.index("install") + 1 :]
        index = next((match[1] for word in rest if (match := INDEX.search(word.partition("=")[2] or word))), None)
        other = any("://" in word for word in rest)
        options = {word.partition("=")[0] for word in rest if word.startswith("-")}
        extra = "--extra-index-url" in options and options.isdisjoint(("--index-url", "-i", "--index-strategy"))
        for word in rest:
            try:
                wanted = Requirement(word)
            except InvalidRequirement:
                continue
            exact = re.fullmatch(r"==([\d.]+)(?:\+\S+)?", str(wanted.specifier))
            local = re.search(r"\+rocm([\d.]+)", str(wanted.specifier))
            rocm = index or (local[1] if local else None) or ("" if other or wanted.url else None)
            yield _Install(
                name=wanted.name.lower(),
                exact=exact[1] if exact else None,
                newest=not wanted.specifier and not wanted.url,
                rocm=rocm,
                where=command.where,
                extra=extra and index is not None and words[0].rpartition("/")[2] != "uv",
                local=local is not None,
                indexed=other or bool(options & {"--find-links", "-f"}),
            )


def _of_image(subject: Subject) -> Iterator[LintFinding]:
    image, where = subject.image, subject.where or (subject.launch.where if subject.launch else subject.name)
    if image is None:
        return
    tag = image.partition(":")[2]
    if image.startswith("rocm/pytorch:") and tag.startswith("rocm") and not _PYTORCH_TAG.match(tag):
        yield _finding_of(
            "image-tag-form", subject, where, image, "invented", "error",
            "tags of rocm/pytorch name ROCm, distribution, Python and torch (rocm6.4_ubuntu22.04_py3.10_pytorch_"
            "release_2.6.0); this one has not all four, so none of that name was published",
            "take a whole tag from hub.docker.com/r/rocm/pytorch/tags",
        )  # fmt: skip
    amd = (
        subject.for_amd
        or (subject.launch and subject.launch.for_amd)
        or any(row.name.startswith(("HSA_", "ROCR_", "HIP_", "PYTORCH_ROCM")) for row in subject.variables)
    )
    if amd and _CUDA_IMAGES.search(image) and "rocm" not in image:
        yield _finding_of(
            "cuda-image", subject, where, image, "conflict", "error",
            "this image is built for CUDA, and the settings with it are for an AMD card: it finds no card",
            "take the ROCm image of the same project (rocm/vllm, vllm/vllm-openai-rocm, rocm/pytorch)",
        )  # fmt: skip

    if amd and (bare := re.search(r"(?:^|/)ollama/ollama(?::latest|:[\d.]+)?$", image)):
        finding = _finding_of(
            "ollama-without-rocm", subject, where, image, "conflict", "error",
            "that tag of Ollama holds the libraries of CUDA alone; an AMD card is served by the tags that end in rocm",
            "ollama/ollama:rocm",
        )  # fmt: skip
        plain = image.partition(":")[0] if bare[0].endswith(("ollama", "latest")) else None
        yield replace(finding, fix=Fix(where=where, before=image, after=f"{plain}:rocm")) if plain else finding


def _of_installs(subject: Subject, installs: list[_Install]) -> Iterator[LintFinding]:
    torch = next((one for one in installs if one.name == "torch"), None)
    meant = subject.image is not None and (subject.image.startswith(_NO_IMAGE) or not _is_rocm(subject.image))
    if torch is not None and torch.rocm is None and (meant or (subject.for_amd and subject.image is None)):
        yield _finding_of(
            "torch-from-default-index", subject, torch.where, f"pip install torch on {subject.image or subject.name}",
            "conflict", "error",
            "the default package index serves torch for CUDA (or the processor); no AMD card is seen by it",
            "add --index-url https://download.pytorch.org/whl/rocmX.Y, or build on a ROCm image",
        )  # fmt: skip
    if torch is not None and torch.extra and torch.newest:
        yield _finding_of(
            "torch-index-next-to-pypi", subject, torch.where, f"torch from PyPI or the index of ROCm {torch.rocm}",
            "conflict", "warning",
            "with --extra-index-url pip takes the highest version of both indexes, and PyPI's torch for CUDA is newer",
            "--index-url for torch in a command of its own, or pin torch==X.Y.Z+rocmA.B",
        )  # fmt: skip
    named = any(row.name.startswith(("PIP_", "UV_")) and "INDEX" in row.name for row in subject.variables)
    if torch is not None and torch.local and not torch.indexed and not named and subject.image is None:
        yield _finding_of(
            "local-version-without-index", subject, torch.where, "torch with +rocm, and no index",
            "conflict", "warning",
            "PyPI has no version with +rocm: pip finds none, unless the caller names the index",
            "--extra-index-url https://download.pytorch.org/whl/rocmX.Y in the same file",
        )  # fmt: skip
    vision = next((one for one in installs if one.name == "torchvision"), None)
    if torch and vision and torch.exact and vision.exact and not _belongs(torch.exact, vision.exact):
        yield _finding_of(
            "torchvision-of-another-torch", subject, vision.where, f"torch {torch.exact}, torchvision {vision.exact}",
            "conflict", "error",
            f"torchvision of another torch is refused or crashes (operator torchvision::nms does not exist); "
            f"torch {torch.exact} goes with torchvision 0.{int(torch.exact.split('.')[1]) + _TORCHVISION_AHEAD}",
            "install both from one index in one command, without a version of torchvision",
        )  # fmt: skip


def _belongs(torch: str, vision: str) -> bool:
    one, other = torch.split("."), vision.split(".")
    return one[0] != "2" or int(one[1]) + _TORCHVISION_AHEAD == int(other[1])


def _of_companions(subject: Subject, installs: list[_Install], matrix: Matrix) -> Iterator[LintFinding]:
    """Yield companions that a rule of the matrix calls broken with the ROCm of the image or the index."""
    rocm = subject.rocm or next((one.rocm for one in installs if one.rocm), None) or _rocm_of(subject.image)
    if rocm is None:
        return
    for one in installs:
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


def _of_version(subject: Subject, one: _Install, companion: Companion, rocm: str) -> Iterator[LintFinding]:
    """Yield a companion whose version is that of another ROCm: the newest counts as that of the newest ROCm."""
    by_rocm = [pairing for pairing in companion.versions if pairing.when.rocm]
    mine = next((pairing for pairing in by_rocm if within(rocm, str(pairing.when.rocm))), None)
    if mine is None or (within(one.exact, mine.version) if one.exact else not one.newest or mine is by_rocm[-1]):
        return
    yield _finding_of(
        "companion-of-another-rocm", subject, one.where, f"{one.name} {one.exact or '(the newest)'} with ROCm {rocm}",
        "never built", "error",
        f"that version has no library for ROCm {rocm}; {mine.version} has ({mine.evidence.summary})",
        f"pip install '{one.name}{mine.version}'",
    )  # fmt: skip


def _of_launch(subject: Subject, launch: Launch) -> Iterator[LintFinding]:
    for device in launch.devices:
        if not device.startswith("/dev/") and "=" not in device:
            whole = f"/dev/{device.strip('/').removeprefix('dev/')}"
            finding = _finding_of(
                "device-path", subject, launch.where, device, "malformed", "error",
                "device nodes lie below /dev; the engine refuses a path that does not exist", whole,
            )  # fmt: skip
            yield replace(finding, fix=Fix(where=launch.where, before=device, after=whole))
    if launch.gpus is not None and (launch.for_amd or "rocm" in launch.image):
        yield _finding_of(
            "gpus-option-of-nvidia", subject, launch.where, f"--gpus {launch.gpus}", "conflict", "error",
            "--gpus asks for NVIDIA's container runtime; with an AMD card the engine refuses or gives none",
            "--device /dev/kfd --device /dev/dri, or AMD's container toolkit with --runtime=amd",
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
            "privileged-with-devices", subject, launch.where, launch.image or subject.name, "harmful", "note",
            "the devices are given, so --privileged adds nothing for ROCm, and opens the whole host to the container",
            "leave privileged out; add the groups video and render where the user is not root",
        )  # fmt: skip
    if launch.privileged or not launch.for_amd or launch.partial:
        return
    if any("dri" in device for device in launch.devices) and not any("kfd" in device for device in launch.devices):
        finding = _finding_of(
            "kfd-not-given", subject, launch.where, " ".join(launch.devices), "conflict", "error",
            "compute goes through /dev/kfd; with /dev/dri alone ROCm finds no card", "add --device /dev/kfd",
        )  # fmt: skip
        node = next(device for device in launch.devices if "dri" in device)
        yield replace(finding, fix=Fix(where=launch.where, before=node, after="/dev/kfd", added=True))
    if launch.user not in (None, "0", "root", "0:0", "root:root") and not launch.groups:
        yield _finding_of(
            "groups-not-given", subject, launch.where, f"user {launch.user}", "conflict", "warning",
            "another user than root is in none of the groups that own the device nodes",
            "add the numbers of the host's groups render and video (group_add, --group-add)",
        )  # fmt: skip
    if launch.shared_memory is None and launch.ipc != "host":
        yield _finding_of(
            "shared-memory-small", subject, launch.where, launch.image or subject.name, "harmful", "note",
            "an engine gives a container 64 MB of /dev/shm; data loaders and RCCL between cards need more",
            "shm_size: 8g (--shm-size 8g), or ipc: host",
        )  # fmt: skip


def _loses_groups(launch: Launch) -> bool:
    """Say whether a start that root does not make hands on none of its user's groups: names and numbers are the
    container's own there."""
    return launch.rootful is not True and not launch.partial and "keep-groups" not in launch.groups


def _is_rocm(image: str) -> bool:
    return bool(re.search(r"rocm|amd|hip|gfx|\$", image, re.IGNORECASE)) or image == "scratch"


def _rocm_of(image: str | None) -> str | None:
    match = _ROCM_TAG.search(image or "")
    return match["rocm"] if match else None


def _finding_of(
    rule: str, subject: Subject, where: str, what: str, kind: Kind, severity: Severity, truth: str, instead: str
) -> LintFinding:
    return LintFinding(
        rule=rule, subject=subject.name, where=where, what=what, kind=kind, severity=severity, truth=truth,
        instead=instead, source=SOURCE,
    )  # fmt: skip
