"""Packages that decide what a card runs, without a version: another one is installed from day to day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rocmatrix.doctor.environment.intent import file_name, means_amd
from rocmatrix.doctor.environment.lint_input import FileFinding, Subject
from rocmatrix.doctor.environment.packages.installs import Install

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
