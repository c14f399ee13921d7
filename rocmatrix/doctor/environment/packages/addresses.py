"""Addresses that packages come from: an index that replaces PyPI for a whole file, and one of CUDA."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rocmatrix.doctor.environment.intent import file_name
from rocmatrix.doctor.environment.lint_input import Command, FileFinding, Subject
from rocmatrix.doctor.environment.packages import nightlies
from rocmatrix.doctor.environment.packages.indexes import refuses_cuda
from rocmatrix.doctor.environment.packages.installs import installs
from rocmatrix.doctor.environment.packages.requirement import separately
from rocmatrix.doctor.environment.shell.words import parts
from rocmatrix.matrix.matrix import Matrix

_REPLACES = re.compile(r"(?:^|\s)(?:--index-url|-i)[= ]\s*[\"']?(?P<url>https?://download\.pytorch\.org/whl/\S*)")
_EXTRA = re.compile(r"--extra-index-url[= ]\s*(?P<url>https?://download\.pytorch\.org/whl/(?:nightly/)?rocm\d\S*)")
_CUDA = re.compile(r"(download\.pytorch\.org/whl/(?:nightly/|test/)?cu\d{2,3}|torch\S{0,20}==[\d.]{1,20}\+cu\d{2,3})\b")
_FURTHER = re.compile(r"pip3? config set \S*extra-index-url")
_FURTHER_NAMES = ("PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX", "PIP_FIND_LINKS")
_OF_ROCM = re.compile(r"/whl/(?:nightly/|test/)?rocm\d")  # a script or a job that serves either maker
# what PyTorch's own index is known to lack: none of it is torch, or asked for by torch
_NOT_THERE = re.compile(
    r"transformers|accelerate|diffusers|datasets|peft|trl|tokenizers|sentencepiece|safetensors|huggingface-hub|"
    r"fastapi|uvicorn|flask\S*|gradio|streamlit|pydantic|sqlalchemy|celery|pandas|scipy|matplotlib|seaborn|"
    r"scikit-\S+|opencv-\S+|librosa|soundfile|openai\S*|langchain\S*|vllm|ultralytics|monai|timm|einops|jupyter\S*|"
    r"notebook|pytest\S*|wandb|tensorboard|bitsandbytes|deepspeed|omegaconf|onnx|onnxruntime\S*|spandrel|ncnn|pnnx|"
    r"python-(?:dotenv|multipart)|gymnasium|stable-baselines3|pytorch-lightning|lightning|spacy|nltk|ray|numba"
)


def found(subject: Subject, matrix: Matrix) -> Iterator[FileFinding]:
    """Yield packages that the one index named does not have, indexes of CUDA, and nightlies that are not there."""
    listed = file_name(subject).endswith((".txt", ".in"))
    seen: set[str] = set()
    if listed:
        yield from _next_to_pypi(subject)
    for note in (note for command in subject.commands for note in nightlies.found(command)):
        if not listed or note.rule not in seen:
            seen.add(note.rule)
            yield note
    others, of_cuda = _names_others(subject), not _serves_both(subject) and refuses_cuda(subject)
    for command in subject.commands:
        replaced = () if others else _replaced(command)
        for note in (*replaced, *nightlies.ended(command, matrix), *(_of_cuda(command) if of_cuda else ())):
            if not listed:
                yield note
            elif note.rule not in seen:  # a file of requirements names its index once for all
                seen.add(note.rule)
                yield replace(note, where=subject.where or note.where)


def _next_to_pypi(subject: Subject) -> Iterator[FileFinding]:
    """Yield the index of ROCm next to PyPI, in a file that leaves torch to what asks for it."""
    installed = {one.name for command in subject.commands for one in installs(command)}
    match = next((found for command in subject.commands if (found := _EXTRA.search(command.text))), None)
    if match and installed.isdisjoint(("torch", "torchvision", "torchaudio")) and subject.commands:
        yield FileFinding(
            rule="torch-index-next-to-pypi", where=subject.where or subject.commands[0].where, what=match[0],
            severity="note",
            truth="no line asks for torch: a package that does takes the highest version of both indexes, and PyPI's "
            "torch for CUDA is newer",
            instead=separately("torch", match["url"]),
        )  # fmt: skip


def _names_others(subject: Subject) -> bool:
    """Return whether a variable or pip's own settings give a further index, which stays next to --index-url."""
    configured = any(_FURTHER.search(command.text) for command in subject.commands)
    return configured or any(row.name in _FURTHER_NAMES for row in subject.variables)


def _replaced(command: Command) -> Iterator[FileFinding]:
    for words in parts(command.text, "download.pytorch.org"):
        text = " ".join(words)
        index = _REPLACES.search(text)
        if index is None or "--extra-index-url" in text or "--find-links" in text or " -f " in text:
            continue
        part = Command(text=shlex.join(words), where=command.where)
        absent = [one.name for one in installs(part) if _NOT_THERE.fullmatch(one.name) and not one.by_url]
        if absent:
            yield _not_there(command, index["url"], absent)


def _not_there(command: Command, url: str, absent: Sequence[str]) -> FileFinding:
    return FileFinding(
        rule="index-replaces-pypi", where=command.where, what=f"{' '.join(absent)} from {url}", severity="error",
        truth="--index-url counts for all that is installed with it, in a requirements file for the whole file: "
        "PyTorch's index has torch and what torch needs, and pip finds no such package",
        instead=separately("torch", url),
    )  # fmt: skip


def _serves_both(subject: Subject) -> bool:
    """Return whether it is a script or a job that installs for either maker."""
    return " stage " not in subject.name and any(_OF_ROCM.search(one.text) for one in subject.commands)


def _of_cuda(command: Command) -> Iterator[FileFinding]:
    match = _CUDA.search(command.text)
    choice = nightlies.CHOICE.search(command.text) or re.search(r"\bif\s", command.text)
    if match and not choice and any(installs(command)):
        yield FileFinding(
            rule="index-of-cuda", where=command.where, what=match[1], severity="error",
            truth="that torch is built for CUDA, and sees no AMD card",
            instead="the index of a ROCm: --index-url https://download.pytorch.org/whl/rocmX.Y",
        )  # fmt: skip
