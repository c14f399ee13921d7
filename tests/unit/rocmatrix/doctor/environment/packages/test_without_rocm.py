"""Packages of CUDA or of the processor where an AMD card is meant."""

import pytest

from rocmatrix.doctor.environment.lint_input import Command
from rocmatrix.doctor.environment.packages.installs import installs
from rocmatrix.doctor.environment.packages.without_rocm import found


def of(text, rocm=None):
    listed = tuple(installs(Command(text=f"pip install {text}", where="a:1")))
    return [(one.rule, one.severity) for one in found(listed, rocm)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nvidia-cublas-cu12", [("cuda-package", "error")]),
        ("cupy-cuda12x", [("cuda-package", "error")]),
        ("onnxruntime-gpu", [("cuda-package", "error")]),
        ("tensorrt", [("cuda-package", "warning")]),
        ("faster-whisper", [("cuda-package", "warning")]),
        ("pynvml", [("cuda-package", "note")]),
        ("nvidia-ml-py", [("cuda-package", "note")]),
        ("onnxruntime", [("processor-package", "note")]),
        ("tensorflow", [("processor-package", "note")]),
        ("torch-hip", [("package-invented", "error")]),
        ("torchvision-rocm==0.20", [("package-invented", "error")]),
        ("onnxruntime-rocm tensorflow-rocm numpy torch pytorch-triton-rocm", []),
        ("xformers", []),
    ],
)
def test_package_without_rocm_is_reported(text, expected):
    assert of(text) == expected


def test_package_that_replaces_torch_counts_where_torch_is_of_rocm():
    assert of("xformers", "6.4") == [("torch-replaced", "warning")]
    assert of("--no-deps xformers", "6.4") == []
    assert of("xformers --index-url https://download.pytorch.org/whl/rocm6.4", "6.4") == []
    assert of("openai-whisper --index-url https://download.pytorch.org/whl/rocm6.4", "6.4") == [
        ("triton-replaced", "note")
    ]
    assert of("openai-whisper") == []


def test_package_of_another_rocm_is_an_error():
    assert of("cupy-rocm-5-0", "6.4") == [("companion-of-another-rocm", "error")]
    assert of("cupy-rocm-7-0", "7.2") == of("cupy-rocm-5-0") == []
