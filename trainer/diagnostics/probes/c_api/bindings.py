"""HIP and hipBLAS through their C interface alone: ctypes, no torch. CUDA's twin names work the same way.

Values of the enumerations: hipError_t and hipMemcpyKind in hip_runtime_api.h, hipblasOperation_t in
hipblas.h, cublasOperation_t in cublas_api.h.
"""

from __future__ import annotations

import ctypes
import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from trainer.diagnostics.probes.c_api.loading import Library

Floats = ctypes.Array[ctypes.c_float]

NO_DEVICE = 100  # hipErrorNoDevice, cudaErrorNoDevice
NO_DRIVER = 35  # hipErrorInsufficientDriver, cudaErrorInsufficientDriver: how CUDA says that none is loaded
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
SGEMM_SHAPE = (37, 29, 41)  # m, n, k: odd, so that no tile fits
SGEMM_LIMIT = 1e-5  # fp32 products of this depth err by about 1e-7; tf32 would err by 5e-4


@dataclass(frozen=True, kw_only=True)
class Interface:
    """The names that one vendor's C interface gives to the same few things."""

    kind: str
    runtime: str
    blas: str
    companions: tuple[str, ...]
    prefix: str
    create: str
    destroy: str
    sgemm: str
    status_text: str
    operation_none: int


HIP = Interface(
    kind="rocm",
    runtime="amdhip64",
    blas="hipblas",
    companions=("rocblas", "hipblaslt"),
    prefix="hip",
    create="hipblasCreate",
    destroy="hipblasDestroy",
    sgemm="hipblasSgemm",
    status_text="hipblasStatusToString",
    operation_none=111,
)
CUDA = Interface(
    kind="cuda",
    runtime="cudart",
    blas="cublas",
    companions=("cublasLt",),
    prefix="cuda",
    create="cublasCreate_v2",
    destroy="cublasDestroy_v2",
    sgemm="cublasSgemm_v2",
    status_text="cublasGetStatusString",
    operation_none=0,
)
INTERFACES = {interface.kind: interface for interface in (HIP, CUDA)}


class CallError(Exception):
    """A C function returned an error; `code` is its number, the message has the library's own words."""

    def __init__(self, function: str, code: int, text: str) -> None:
        super().__init__(f"{function} returned {code}: {text}")
        self.code = code


class NoDeviceError(Exception):
    """The libraries answer and there is no device."""


@dataclass(frozen=True, kw_only=True)
class Api:
    """A loaded library whose functions return zero or an error number; `describe` is the one that names errors."""

    library: Library
    describe: str

    def call(self, function: str, *arguments: Any) -> None:
        """Call `function`. Raises CallError unless it returns zero."""
        if code := getattr(self.library.handle, function)(*arguments):
            raise CallError(function, code, self._text(code))

    def integer(self, function: str) -> int:
        """Return what `function(int *)` writes. Raises CallError unless it returns zero."""
        value = ctypes.c_int()
        self.call(function, ctypes.byref(value))
        return value.value

    def _text(self, code: int) -> str:
        describe = getattr(self.library.handle, self.describe, None)
        if describe is None:
            return f"{self.library.path.name} has no {self.describe} to name it"
        describe.restype = ctypes.c_char_p
        return (describe(code) or b"unknown").decode(errors="replace")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A vendor's runtime and the BLAS on top of it."""

    interface: Interface
    runtime: Api
    blas: Api


def sgemm_error(pair: Pair, handle: ctypes.c_void_p) -> float:
    """Return the relative Frobenius error of one fp32 product with fresh random input, against fp64 on the CPU.

    Raises:
        CallError: a call of the runtime or of the BLAS failed.
    """
    m, n, k = SGEMM_SHAPE
    a, b = (_floats([random.gauss(0, 1) for _ in range(size)]) for size in (m * k, k * n))
    c = sgemm(pair, handle, a, b)
    reference = [sum(a[i + p * m] * b[p + j * k] for p in range(k)) for j in range(n) for i in range(m)]
    return math.dist(list(c), reference) / math.hypot(*reference)


def sgemm(pair: Pair, handle: ctypes.c_void_p, a: Floats, b: Floats) -> Floats:
    """Return C (m, n) = A (m, k) @ B (k, n), all by columns as BLAS has it; C is poisoned with NaN before.

    Args:
        handle: handle of the BLAS library.
        a: shape (m, k).
        b: shape (k, n).
    """
    m, n, k = SGEMM_SHAPE
    c, none = _floats([math.nan] * (m * n)), pair.interface.operation_none
    one, zero = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
    with _on_device(pair, a) as left, _on_device(pair, b) as right, _on_device(pair, c) as out:
        pair.blas.call(pair.interface.sgemm, handle, none, none, m, n, k, one, left, m, right, k, zero, out, m)
        _copy(pair, c, out, ctypes.sizeof(c), DEVICE_TO_HOST)
    return c


@contextmanager
def _on_device(pair: Pair, values: Floats) -> Iterator[ctypes.c_void_p]:
    pointer, size = ctypes.c_void_p(), ctypes.sizeof(values)
    pair.runtime.call(f"{pair.interface.prefix}Malloc", ctypes.byref(pointer), ctypes.c_size_t(size))
    try:
        _copy(pair, pointer, values, size, HOST_TO_DEVICE)
        yield pointer
    finally:
        pair.runtime.call(f"{pair.interface.prefix}Free", pointer)


def _copy(pair: Pair, target: Any, source: Any, size: int, direction: int) -> None:
    pair.runtime.call(f"{pair.interface.prefix}Memcpy", target, source, ctypes.c_size_t(size), direction)


def _floats(values: Sequence[float]) -> Floats:
    return (ctypes.c_float * len(values))(*values)
