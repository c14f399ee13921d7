"""Packages that decide what a card runs, without a version: another one is installed from day to day."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rocmatrix.doctor.environment.intent import file_name, means_amd
from rocmatrix.doctor.environment.lint_input import Command, FileFinding, Subject
from rocmatrix.doctor.environment.packages.installs import Install
from rocmatrix.doctor.environment.packages.installs import installs as installs_of
from rocmatrix.doctor.environment.shell.words import parts

# what is built for one ROCm or one torch, and what asks for a torch itself
_DECIDES = re.compile(
    r"torch|torch(?:vision|audio|ao|text|data|codec|tune)|jax|jaxlib|jax-rocm\S*|flax|tensorflow\S*|onnxruntime\S*|vllm|"
    r"sglang|\S*triton\S*|xformers|flash-attn|bitsandbytes|gptqmodel|auto-?gptq|autoawq|optimum|deepspeed|ctranslate2|"
    r"faster-whisper|openai-whisper|whisperx|cupy\S*|unsloth|axolotl|llamafactory|llama-cpp-python|accelerate|peft|trl|"
    r"transformers|diffusers|sentence-transformers|lightning|pytorch-lightning|timm|ultralytics|amdsmi|ray|gsplat|"
    r"megatron-core|transformer-engine|liger-kernel|aiter|k2|espnet|numba"
)
_OF_TORCH = ("torch", "torchvision", "torchaudio")
_HAS_TORCH = re.compile(r"(?:^|/)rocm/(?:pytorch|vllm|sgl)[\w-]*(?::|@|$)")
_FROM_GIT = re.compile(r"git\+(?:https?|ssh)://[^\s\"';&|]+")
_REF = re.compile(r"@[\w./${}-]+$")
# pip with a list of packages, or a project with what it asks for; what keeps it from another torch
_INSTALLS_LIST = re.compile(
    r"\bpip[\d.]* (?:\S+ ){0,20}?install (?:\S+ ){0,20}?"
    r"(?P<listed>(?:-r|--requirement)[ =]?\S+|(?:-e )?\.{1,2}(?:\[\S*\])?(?= |$))"
)
_LIMITED = re.compile(r"(?:^| )(?:-c|--constraints?|--no-deps|--index-url|-i|--torch-backend)[ =]|rocm\d|--no-deps|\$")
_EXTRA = re.compile(r" --extra-index-url[ =]\S+")
_CHECKED = re.compile(r"torch\.version\.hip")
_ROCM_INDEX = re.compile(r"/whl/(?:nightly/)?rocm\d")
_HELD = ("PIP_CONSTRAINT", "UV_CONSTRAINT", "PIP_BUILD_CONSTRAINT")
_LISTS = (".txt", ".in")


def found(subject: Subject, installs: Sequence[Install]) -> Iterator[FileFinding]:
    """Yield packages without a version in a Dockerfile or a requirements file for AMD cards, once for each command.

    Args:
        installs: what the commands of the subject install, in their order.
    """
    listed = file_name(subject).endswith(_LISTS)
    if not (listed or " stage " in subject.name) or not means_amd(subject):
        return
    if any(row.name in _HELD for row in subject.variables):
        return
    yield from _without_version(subject, installs, one_note=listed)
    yield from _from_git(subject)
    if not listed:
        yield from _of_a_list(subject)


def _without_version(subject: Subject, installs: Sequence[Install], *, one_note: bool) -> Iterator[FileFinding]:
    places: dict[str, list[str]] = {}
    for one in installs:
        if one.newest and not one.held and _DECIDES.fullmatch(one.name) and not _there(subject, one):
            names = places.setdefault("" if one_note else one.where, [one.where])
            names += [one.name] if one.name not in names else []
    for where, *names in places.values():
        yield FileFinding(
            rule="version-not-pinned", where=where, what=" ".join(names), severity="note",
            truth="without a version the newest of the day is installed, which may ask for another torch or ROCm",
            instead="== with the version that was tried, or -c with a file of versions (pip freeze)",
        )  # fmt: skip


def _there(subject: Subject, one: Install) -> bool:
    """Return whether the image brings a package, so that pip leaves it as it is."""
    own = one.rocm is None and not one.indexed and not one.upgrade
    return one.name in _OF_TORCH and own and bool(_HAS_TORCH.search(subject.image or ""))


def _from_git(subject: Subject) -> Iterator[FileFinding]:
    for command in subject.commands:
        for match in _FROM_GIT.finditer(command.text):
            address = match[0].removeprefix("git+").partition("#")[0]
            if "install" in command.text and not _REF.search(address.partition("://")[2].partition("/")[2]):
                yield FileFinding(
                    rule="source-moves", where=command.where, what=match[0], severity="note",
                    truth="the default branch is another commit from build to build, and may not build with this ROCm",
                    instead=f"{match[0].partition('#')[0]}@TAG, or @ and a commit",
                )  # fmt: skip


def _of_a_list(subject: Subject) -> Iterator[FileFinding]:
    """Yield the first list of packages that is installed over a torch for ROCm, and that may hold another torch."""
    there = bool(_HAS_TORCH.search(subject.image or ""))
    if any(_CHECKED.search(command.text) for command in subject.commands):
        return
    places = Counter(command.where for command in subject.commands)  # what a list holds that was read stands there too
    for command in subject.commands:
        alone = there and places[command.where] == 1
        lists = [listed for words in parts(command.text, "install") if (listed := _list(words))] if alone else []
        if lists:  # the last of them, as the first may be another maker's
            yield FileFinding(
                rule="torch-may-be-replaced", where=command.where, what=f"pip install {lists[-1]}", severity="note",
                truth="torch for ROCm is there already; what asks for another one in that list puts the torch of the "
                "default index in its place, which is CUDA's",
                instead="-c with a file that names the torch that is there, and then a check of torch.version.hip",
            )  # fmt: skip
            return
        there = there or _puts_torch(command)


def _puts_torch(command: Command) -> bool:
    """Return whether a command installs torch for ROCm; the index may be in a variable that it sets itself."""
    found = [one for one in installs_of(command) if one.name == "torch"]
    return any(one.rocm or (one.indexed and _ROCM_INDEX.search(command.text)) for one in found)


def _list(words: Sequence[str]) -> str | None:
    """Return the list or the project that pip installs without limits; None for other commands."""
    text = _EXTRA.sub("", " ".join(words))  # PyPI is asked next to that index, and its torch may be newer
    if _LIMITED.search(text) or not (found := _INSTALLS_LIST.search(text)):
        return None
    return found["listed"]
