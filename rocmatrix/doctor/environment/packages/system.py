"""What apt and dnf are asked for in an image for AMD cards: commands that stop a build, or change its base."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmatrix.doctor.environment.intent import file_name, means_amd
from rocmatrix.doctor.environment.lint_input import Command, FileFinding, Fix, Subject
from rocmatrix.doctor.environment.packages.releases import codename
from rocmatrix.doctor.environment.shell.words import parts

_OF_A_SHELL = re.compile(
    r"(?:export \w+=(?:\$\([^()]*\)|`[^`]*`|\S*)|cd \S+|conda activate\b.*|source \S*activate|\. \S*activate)$"
)
_SUBSTITUTED = re.compile(r"\$\([^()]*\)|`[^`]*`")  # what a shell puts in
_APT = ("apt", "apt-get")
_YES = re.compile(r"-\w*y\w*|-q{2,}\w*|--yes|--assume-yes|--assume-no|-s|--simulate|--download-only|--print-uris")
_ASSUMED = re.compile(r"Assume-Yes|\byes\b[^;&|]{0,80}\|", re.IGNORECASE)
_LISTS_GONE = re.compile(r"^(?:docker\.io/)?(?:library/)?(?:ubuntu|debian|python|rocm/dev-ubuntu-[\d.]+)(?::|$)")
_OF_ROCM = re.compile(r"^(?:docker\.io/)?rocm/(?!dev-|rocm-terminal)|rocm.*(?:pytorch|vllm)")
_ROCM_PACKAGE = re.compile(r"^(?:rocm(?:-[\w*-]+)?|hip(?:blas|cc|rand)?(?:-devel|-dev)?|rocblas(?:-[\w*]+)?)$")
_AMD_SOURCE = re.compile(r"repo\.(?:radeon|amd)\.com|amdgpu-install|rocm\.list|rocm\.repo|rocm\.\w+\.amd\.com")
# packages that newer releases of Ubuntu and Debian have no more, and what has taken their place
_GONE = {"libgl1-mesa-glx": "libgl1", "libegl1-mesa": "libegl1", "python3-distutils": "python3-setuptools"}
# whose Python is apt's alone (PEP 668)
_MANAGED = re.compile(
    r"^(?:docker\.io/)?(?:library/)?(?:ubuntu(?::(?:23|24|25|26)\.\d\d|:noble|:latest|$)|debian(?::1[2-9]|:bookworm|:trixie"
    r"|:latest|:stable|$)|rocm/dev-ubuntu-24\.04)"
)
_CUDA_PACKAGE = re.compile(
    r"(?:nvidia-(?:cuda|driver|utils|container|docker)|cuda-(?:toolkit|runtime|libraries|\d)|libcudnn|libnccl|nvidia-cudnn)"
)
_OTHER_PYTHON = re.compile(
    r"venv|virtualenv|conda|mamba|pyenv|pixi|\buv\b|pipx|deadsnakes|get-pip|break[-_]system|externally.managed|poetry|"
    r"python3?\.\d+ -m pip|make (?:alt)?install|rye\b|ensurepip",
    re.IGNORECASE,
)
_INTO_SYSTEM = re.compile(r"(?:^|[\s/])pip3?$|-m pip$")
_ELSEWHERE = re.compile(r"(?:^| )(?:-t|--target|--prefix|--root|--dry-run)\b")
_VERSION = re.compile(r"rocm[-_]?(\d+\.\d+(?:\.\d+)?)", re.IGNORECASE)


def found(subject: Subject) -> Iterator[FileFinding]:
    """Yield calls of apt and dnf that stop the build of a stage for AMD cards, or change what its base stands for."""
    if " stage " not in subject.name or not means_amd(subject):
        return
    yield from _lost(subject)
    yield from _questions(subject)
    yield from _upgrades(subject)
    yield from _without_lists(subject)
    yield from _of_distribution(subject)
    yield from _gone(subject)
    yield from _of_cuda(subject)
    yield from _managed(subject)


def _lost(subject: Subject) -> Iterator[FileFinding]:
    """Yield commands that change a shell alone, which ends with them."""
    for command in () if subject.one_shell else subject.commands:
        rows = [words for words in parts(command.text) if words]
        if (
            rows
            and all(_OF_A_SHELL.match(" ".join(words)) for words in rows)
            and not re.search(r"[>|`(]", _SUBSTITUTED.sub("", command.text))
        ):
            yield FileFinding(
                rule="lost-with-the-shell", where=command.where, what=command.text[:80], severity="warning",
                truth="each RUN has a shell of its own: what it exports, activates or changes into is gone behind it",
                instead="ENV for variables, WORKDIR for folders, one RUN with what needs them",
            )  # fmt: skip


def _calls(command: Command, name: str) -> Iterator[list[str]]:
    """Yield the words of every call of apt with an operation such as install."""
    for words in parts(command.text, name):
        at = next((at for at, word in enumerate(words) if word.rpartition("/")[2] in _APT), None)
        if at is not None and name in words[at + 1 :]:
            yield words[at:]


def _questions(subject: Subject) -> Iterator[FileFinding]:
    if any(_ASSUMED.search(command.text) for command in subject.commands):
        return
    for command in subject.commands:
        for words in _calls(command, "install"):
            if not any(_YES.fullmatch(word) for word in words[1:]):
                before = " ".join(words[: words.index("install") + 1])
                yield FileFinding(
                    rule="apt-asks", where=command.where, what=" ".join(words[:4]), severity="warning",
                    truth="without -y apt asks before it installs further packages; a build has no one to answer, and "
                    "stops",
                    instead=f"{before} -y",
                    fix=Fix(where=command.where, before=before, after=f"{before} -y")
                    if command.text.count(before) == 1 else None,
                )  # fmt: skip


def _upgrades(subject: Subject) -> Iterator[FileFinding]:
    for command in subject.commands:
        for operation in ("upgrade", "dist-upgrade", "full-upgrade"):
            for words in _calls(command, operation):
                yield FileFinding(
                    rule="base-upgraded", where=command.where, what=" ".join(words[:3]), severity="note",
                    truth="it changes from build to build what the tag of the base stands for",
                    instead="a newer tag of the base, and install what is needed",
                )  # fmt: skip
                return


def _without_lists(subject: Subject) -> Iterator[FileFinding]:
    """Yield the first install of a stage whose image has no package lists, where nothing has fetched them."""
    if not _LISTS_GONE.search(subject.image or "") or subject.inherits:
        return
    for command in subject.commands:
        if re.search(
            r"\bapt(?:-get)?\b[^;&|]{0,80}\bupdate\b|apt-add-repository|add-apt-repository|\bnala\b"
            r"|\|\s*(?:sudo )?(?:-E )?(?:ba)?sh\b",  # a script that is fetched may update them
            command.text,
        ):
            return
        if next(_calls(command, "install"), None) is not None:
            yield FileFinding(
                rule="apt-without-lists", where=command.where, what="apt install, and no apt update before it",
                severity="warning",
                truth="the image has no package lists, so that apt finds no package",
                instead="apt-get update && apt-get install -y, in one RUN",
            )  # fmt: skip
            return


def _of_distribution(subject: Subject) -> Iterator[FileFinding]:
    """Yield ROCm of the distribution in a file that is named after a release of ROCm."""
    named = _VERSION.search(file_name(subject))
    texts = [command.text for command in subject.commands]
    if named is None or "rocm" in (subject.image or "") or any(_AMD_SOURCE.search(text) for text in texts):
        return
    for command in subject.commands:
        for words in parts(command.text):
            packages = [word for word in words if _ROCM_PACKAGE.match(word)] if "install" in words else []
            if packages:
                yield FileFinding(
                    rule="rocm-of-the-distribution", where=command.where, what=" ".join(packages[:4]), severity="note",
                    truth=f"the file is named after ROCm {named[1]}, and the packages are the distribution's own: "
                    "their release is that of the day, and need not be the same",
                    instead="a version with each package, or AMD's packages of that release",
                )  # fmt: skip
                return


def _gone(subject: Subject) -> Iterator[FileFinding]:
    """Yield packages that the distribution of the image has no more, under the name of before."""
    if codename(subject.image or "") != "noble":
        return
    for command in subject.commands:
        packages = [word for words in _calls(command, "install") for word in words]
        for name in sorted(_GONE.keys() & set(packages)):
            yield FileFinding(
                rule="package-gone", where=command.where, what=f"{name} on {subject.image}", severity="error",
                truth="that release has no package of the name: apt installs nothing, and the build stops",
                instead=_GONE[name], fix=Fix(where=command.where, before=name, after=_GONE[name]),
            )  # fmt: skip


def _of_cuda(subject: Subject) -> Iterator[FileFinding]:
    """Yield packages of NVIDIA's that apt installs into an image for AMD cards."""
    for command in () if re.search(r"nvidia|cuda", subject.image or "") else subject.commands:
        for name in (word for words in _calls(command, "install") for word in words if _CUDA_PACKAGE.match(word)):
            yield FileFinding(
                rule="cuda-package", where=command.where, what=name, severity="warning",
                truth="this package is CUDA's, and nothing of it runs on an AMD card", instead="remove it",
            )  # fmt: skip


def _managed(subject: Subject) -> Iterator[FileFinding]:
    """Yield the first pip that installs into a Python which the distribution manages."""
    texts = [command.text for command in subject.commands] + [f"{row.name}={row.value}" for row in subject.variables]
    if not _MANAGED.search(subject.image or "") or subject.inherits or any(map(_OTHER_PYTHON.search, texts)):
        return
    for command in subject.commands:
        for words in parts(command.text, "install"):
            at = words.index("install") if "install" in words else 0
            if _INTO_SYSTEM.search(" ".join(words[:at])) and not _ELSEWHERE.search(" ".join(words[at:])):
                yield FileFinding(
                    rule="python-of-the-distribution", where=command.where, what=" ".join(words[at - 1 : at + 3]),
                    severity="warning",
                    truth="the Python of that release is apt's alone (PEP 668): pip refuses to install into it "
                    "(externally-managed-environment)",
                    instead="python3 -m venv /opt/venv and ENV PATH=/opt/venv/bin:$PATH, or --break-system-packages",
                )  # fmt: skip
                return
