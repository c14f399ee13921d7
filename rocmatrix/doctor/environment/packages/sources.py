"""What a Dockerfile clones and downloads: sources and files that change without a change of the Dockerfile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rocmatrix.doctor.environment.intent import means_amd
from rocmatrix.doctor.environment.lint_input import Command, FileFinding, Subject
from rocmatrix.doctor.environment.packages.releases import rocm_there

_CLONE = re.compile(r"\bgit (?:-c \S+ )*clone\b(?P<arguments>(?:(?!&&)[^;|\n])*)")
_BRANCH = re.compile(r"(?:^|\s)(?:-b|--branch|--revision)[= ]\s*(?P<ref>\S+)")
_CHECKED_OUT = re.compile(r"\bgit (?:-C \S+ )?(?:checkout|reset|switch|fetch)\s(?P<words>[^;&|\n]*)")
_NO_REF = re.compile(r"-|(?:origin|upstream|FETCH_HEAD|HEAD)$")
_CONTEXT = 4000  # characters behind a clone in which what is checked out is looked for
# a hash, a version, a tag with a number, or a variable, whose value is the caller's
_FIXED = re.compile(r"[0-9a-f]{7,40}|.*\d+\.\d+.*|(?:refs/)?tags/.+|(?:v|b|r|release[-_/]?)\d+.*|.*\$.*|\d{4,}.*")
_ADDRESS = re.compile(r"\w+://[^\s\"']+|git@[^\s\"']+|\$\{?\w+\}?")
_LATEST = re.compile(r"https?://[^\s\"'|;&)]{1,200}?(?:[-_]latest[-_.]|/latest/(?=[^\s\"'|;&)]))[^\s\"'|;&)]{0,200}")
_OF_CUDA = re.compile(
    r"https?://[^\s\"'|;&)]{1,300}?(?:linux-x64-gpu|[-_+.%B]cu1[12]\d|[-_]cuda[-_]?1[12]|/cuda_?1[12])[^\s\"'|;&)]{0,200}"
    r"\.(?:tgz|tar\.\w+|zip|whl|run|deb)"
)
# what the default branch of a project asks of ROCm: its address, how it is built, the oldest release
_LLAMA_CPP = (
    re.compile(r"(?:ggml-org|ggerganov)/llama\.cpp"), re.compile(r"-DGGML_HIP=(?:ON|1)", re.IGNORECASE), (6, 1),
)  # fmt: skip
_PAGES = re.compile(
    r"//(?:[\w-]+\.)*(?:docs|readthedocs)\.|/docs/|\.html?(?:#.*)?$"
)  # what a comment or a message refers the reader to


def found(subject: Subject) -> Iterator[FileFinding]:
    """Yield clones without a tag or commit, and downloads of the newest file, in what makes an image or a container
    for AMD cards. A script clones into a checkout that its user updates."""
    if (" stage " in subject.name or " container " in subject.name) and means_amd(subject):
        yield from _clones(subject.commands)
        yield from _too_old(subject)
        for command in subject.commands:
            yield from _downloads(command)
            yield from _of_cuda(subject, command)


def _clones(commands: Sequence[Command]) -> Iterator[FileFinding]:
    for command, clone, after in _in_context(commands):
        refs = [match["ref"] for match in _BRANCH.finditer(clone["arguments"])]
        for match in _CHECKED_OUT.finditer(after):
            refs += [word for word in match["words"].split() if not _NO_REF.match(word)]
        plain = [ref.strip("\"'") for ref in refs]
        if not any(_FIXED.fullmatch(ref) for ref in plain):
            yield _moving_source(command, clone["arguments"], plain)


def _too_old(subject: Subject) -> Iterator[FileFinding]:
    """Yield a clone of llama.cpp as it is today, which is built with a ROCm that it refuses."""
    address, built, oldest = _LLAMA_CPP
    rocm = rocm_there(subject)
    if rocm is None or not any(built.search(command.text) for command in subject.commands):
        return
    for note in _clones(subject.commands):
        if address.search(note.what) and tuple(map(int, rocm.split(".")[:2])) < oldest:
            yield replace(
                note, rule="rocm-too-old-for-source", severity="error", what=f"llama.cpp with ROCm {rocm}",
                truth="its build with HIP ends at once: At least ROCM/HIP V6.1 is required",
                instead="an image of ROCm 6.1 or newer, or --branch with an old tag of llama.cpp",
            )  # fmt: skip


def _in_context(commands: Sequence[Command]) -> list[tuple[Command, re.Match[str], str]]:
    """Return every clone with the text up to the next one, in its command and in the commands that follow."""
    found: list[tuple[Command, re.Match[str], str]] = []
    after = ""
    for command in reversed(commands):
        text = f"{command.text}\n{after}"
        for clone in reversed(list(_CLONE.finditer(command.text))):
            found.append((command, clone, text[clone.end() :]))
            text = text[: clone.start()]
        after = text[:_CONTEXT]
    return found[::-1]


def _moving_source(command: Command, arguments: str, refs: list[str]) -> FileFinding:
    address = _ADDRESS.search(arguments)
    source = address[0] if address else arguments.strip()
    return FileFinding(
        rule="source-moves", where=command.where, what=" ".join(("git clone", source, *refs)), severity="note",
        truth=f"{refs[-1] if refs else 'the default branch'} is another commit from build to build, and may not "
        "build with this ROCm",
        instead="--branch with a tag, or git checkout of a commit",
    )  # fmt: skip


def _of_cuda(subject: Subject, command: Command) -> Iterator[FileFinding]:
    built = (match for match in _OF_CUDA.finditer(command.text) if "cuda" not in (subject.image or ""))
    for match in built:
        yield FileFinding(
            rule="download-of-cuda", where=command.where, what=match[0], severity="warning",
            truth="that file is built for CUDA: on an AMD card it computes on the processor, or does not load",
            instead="its build for ROCm, from the project or from repo.radeon.com, or one from source",
        )  # fmt: skip


def _downloads(command: Command) -> Iterator[FileFinding]:
    for match in _LATEST.finditer(command.text):
        if not _PAGES.search(match[0]):
            yield FileFinding(
                rule="download-moves", where=command.where, what=match[0], severity="note",
                truth="latest in the address is another file with every release",
                instead="the address of one version, with a check of its hash",
            )  # fmt: skip
