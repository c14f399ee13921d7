"""Packages that have nothing for an AMD card as the package index serves them, and what to take instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rocmatrix.doctor.environment.lint_input import Command, FileFinding
from rocmatrix.doctor.environment.packages.installs import Install
from rocmatrix.doctor.environment.rules import Severity


@dataclass(frozen=True, kw_only=True)
class _Package:
    names: re.Pattern[str]
    severity: Severity
    truth: str
    instead: str
    rule: str = "cuda-package"


_OF_CUDA = (
    _Package(
        names=re.compile(
            r"nvidia-(?!ml-py|cuda-nvdisasm)[\w-]+|cupy-cuda\w+|cuda-\w+|cudatoolkit|pycuda|[\w-]+-cu1\d\d?|cudf|cuml|cugraph"
        ),
        severity="error",
        truth="this package is CUDA's, and nothing of it runs on an AMD card",
        instead="remove it; what needs it is built for ROCm, or is not",
    ),
    _Package(
        names=re.compile(r"onnxruntime-gpu"),
        severity="error",
        truth="onnxruntime-gpu is built for CUDA: on an AMD card it falls back to the processor",
        instead="onnxruntime-migraphx or onnxruntime-rocm of repo.radeon.com, for the same ROCm",
    ),
    _Package(
        names=re.compile(r"nvidia-ml-py|pynvml"),
        severity="note",
        truth="it reads NVIDIA's driver, which a machine with an AMD card does not have",
        instead="amdsmi, for an AMD card's sensors",
    ),
    _Package(
        names=re.compile(r"tensorrt[\w-]*|faiss-gpu|flashinfer-python"),
        severity="warning",
        truth="this package calls NVIDIA's libraries, which a machine with an AMD card does not have",
        instead="remove it, or make it optional (faiss-cpu searches without a card)",
    ),
    _Package(
        names=re.compile(r"ctranslate2|faster-whisper"),
        severity="warning",
        truth="CTranslate2 of the package index is built for CUDA and for the processor: an AMD card is not used",
        instead="a CTranslate2 built for HIP, or whisper of transformers or whisper.cpp",
    ),
)
_OF_THE_PROCESSOR = (
    _Package(
        names=re.compile(r"onnxruntime"),
        severity="note",
        truth="onnxruntime without a suffix computes on the processor alone",
        instead="onnxruntime-migraphx or onnxruntime-rocm of repo.radeon.com for the same ROCm, to use the card",
        rule="processor-package",
    ),
    _Package(
        names=re.compile(r"tensorflow"),
        severity="note",
        truth="tensorflow of the package index is built for CUDA and for the processor",
        instead="tensorflow-rocm of repo.radeon.com for the same ROCm",
        rule="processor-package",
    ),
)
_REPLACING = (
    _Package(
        names=re.compile(r"xformers|vllm|sglang|chatterbox-tts"),
        severity="warning",
        truth="of the package index it asks for one exact torch of CUDA, which replaces the torch of ROCm",
        instead="its build for ROCm (xformers is in PyTorch's index, rocm/vllm is an image), or --no-deps",
        rule="torch-replaced",
    ),
)
_TRITON = (
    _Package(
        names=re.compile(r"triton|openai-whisper"),
        severity="note",
        truth="triton of the package index is put over the files of the triton that torch for ROCm brings",
        instead="leave triton out, or install openai-whisper with --no-deps",
        rule="triton-replaced",
    ),
)
_INVENTED = (
    _Package(
        names=re.compile(
            r"(?:torch|torchvision|torchaudio|pytorch)-(?:hip|rocm|amd)|(?:rocm|amd|hip)-(?:torch|pytorch)"
        ),
        severity="error",
        truth="no package of that name holds PyTorch: its builds for ROCm have the same names as all others",
        instead="torch, torchvision and torchaudio with --index-url https://download.pytorch.org/whl/rocmX.Y",
        rule="package-invented",
    ),
)
_ON_CTRANSLATE2 = ("ctranslate2", "faster-whisper", "whisperx")
_BUILDS_CTRANSLATE2 = re.compile(r"(?is)git clone.{0,200}ctranslate2.{0,2000}WITH_HIP=ON")
_VERSIONED = re.compile(r"cupy-rocm-(\d+)-(\d+)")


def found(installs: Sequence[Install], rocm: str | None) -> Iterator[FileFinding]:
    """Yield packages that an AMD card has nothing of.

    Args:
        installs: what is installed on something that is meant for an AMD card.
        rocm: the ROCm of the image or of torch's index; None where it is not known.
    """
    with_torch = rocm is not None or any(one.name == "torch" and one.rocm for one in installs)
    for one in installs:
        replacing = with_torch and not one.alone
        yield from _listed(one, _INVENTED)
        if (one.rocm is None or one.extra) and not one.for_rocm:
            yield from _listed(one, (*_OF_CUDA, *_OF_THE_PROCESSOR, *(_REPLACING if replacing else ())))
        yield from _listed(one, _TRITON if replacing else ())
        yield from _of_another(one, rocm)


def is_built(one: Install, commands: Iterable[Command]) -> bool:
    """Return whether CTranslate2 is built there from a source for HIP, which pip then leaves in its place."""
    return one.name in _ON_CTRANSLATE2 and any(_BUILDS_CTRANSLATE2.search(command.text) for command in commands)


def _listed(one: Install, packages: Sequence[_Package]) -> Iterator[FileFinding]:
    package = next((row for row in packages if row.names.fullmatch(one.name)), None)
    if package is not None:
        yield FileFinding(
            rule=package.rule, where=one.where, what=one.name, severity=package.severity, truth=package.truth,
            instead=package.instead,
        )  # fmt: skip


def _of_another(one: Install, rocm: str | None) -> Iterator[FileFinding]:
    named = _VERSIONED.fullmatch(one.name)
    if named and rocm and named[1] != rocm.partition(".")[0]:
        yield FileFinding(
            rule="companion-of-another-rocm", where=one.where, what=f"{one.name} with ROCm {rocm}", severity="error",
            truth=f"that package is built for ROCm {named[1]}, whose libraries have other names than those of {rocm}",
            instead=f"cupy built for ROCm {rocm.partition('.')[0]}",
        )  # fmt: skip
