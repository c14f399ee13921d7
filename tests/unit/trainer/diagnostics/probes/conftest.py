"""Probes made of a few lines of source, so that a test can run one that misbehaves, and a GPU made of none.

The fake GPU exists in this process's memory only: the few C functions that the probes call, in Python. It
stands in for libamdhip64 and libhipblas (or for CUDA's pair) where there is no card.
"""

from __future__ import annotations

import ctypes
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainer.diagnostics.probes.c_api.bindings import HIP, Interface
from trainer.diagnostics.probes.c_api.loading import Library
from trainer.diagnostics.probes.registry import Probe

MakeProbe = Callable[..., Probe]


@pytest.fixture
def make_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeProbe:
    """Write `source` as a module on the import path and return a probe that runs it."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def make(source: str, *, name: str = "fault", timeout: float = 60.0) -> Probe:
        (tmp_path / "fault.py").write_text(textwrap.dedent(source))
        return Probe(name=name, module="fault", summary="a fault", timeout_seconds=timeout)

    return make


@pytest.fixture
def fake_gpu() -> SimpleNamespace:
    """`runtime(...)` and `blas(...)` make the two fake libraries."""
    return SimpleNamespace(runtime=fake_runtime, blas=fake_blas)


def library(stem: str, **functions: Any) -> Library:
    """A loaded library with these functions."""
    return Library(handle=SimpleNamespace(**functions), path=Path(f"/opt/fake/lib{stem}.so.9"))  # type: ignore[arg-type]


def fake_runtime(interface: Interface = HIP, *, devices: int = 1, count_error: int = 0, version: int = 0) -> Library:
    """A runtime that counts `devices`, or answers `count_error`; its device memory is host memory."""
    blocks: dict[int, Any] = {}

    def malloc(pointer: Any, size: ctypes.c_size_t) -> int:
        block = ctypes.create_string_buffer(size.value)
        pointer._obj.value = ctypes.addressof(block)
        blocks[ctypes.addressof(block)] = block
        return 0

    def memcpy(target: Any, source: Any, size: ctypes.c_size_t, direction: int) -> int:
        ctypes.memmove(target, source, size.value)
        return 0

    named = {
        "GetDeviceCount": lambda count: _write(count, devices) or count_error,
        "RuntimeGetVersion": lambda number: _write(number, version),
        "DriverGetVersion": lambda number: 101,
        "GetErrorString": lambda code: f"the words for {code}".encode(),
        "Malloc": malloc,
        "Memcpy": memcpy,
        "Free": lambda pointer: 0 if blocks.pop(pointer.value) else 1,
    }
    return library(interface.runtime, **{interface.prefix + name: function for name, function in named.items()})


def fake_blas(
    interface: Interface = HIP, *, create_error: int = 0, wrong: bool = False, silent: bool = False
) -> Library:
    """A BLAS whose handle is 42; `wrong` leaves out the last term of each sum, `silent` writes no output."""

    def sgemm(handle: Any, op_a: int, op_b: int, m: int, n: int, k: int, *rest: Any) -> int:
        one, left, lda, right, ldb, zero, out, ldc = rest
        assert (handle.value, op_a, op_b, lda, ldb, ldc) == (42, interface.operation_none, op_a, m, k, m)
        assert (one._obj.value, zero._obj.value) == (1.0, 0.0)
        a, b, c = (_matrix(pointer, size) for pointer, size in ((left, m * k), (right, k * n), (out, m * n)))
        for i, j in ((i, j) for i in range(0 if silent else m) for j in range(n)):
            c[i + j * m] = sum(a[i + p * m] * b[p + j * k] for p in range(k - wrong))
        return 0

    functions = {
        interface.create: lambda handle: create_error or _write(handle, 42),
        interface.destroy: lambda handle: 0,
        interface.sgemm: sgemm,
        interface.status_text: lambda code: f"STATUS_{code}".encode(),
    }
    return library(interface.blas, **functions)


def _matrix(pointer: ctypes.c_void_p, size: int) -> ctypes.Array[ctypes.c_float]:
    assert pointer.value
    return (ctypes.c_float * size).from_address(pointer.value)


def _write(reference: Any, value: int) -> int:
    reference._obj.value = value
    return 0
