from __future__ import annotations

import ctypes
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainer.diagnostics.probes.c_api import bindings as hip
from trainer.diagnostics.probes.c_api.bindings import CUDA, HIP, Api, CallError, Interface, Pair


def make_pair(fake_gpu: SimpleNamespace, interface: Interface = HIP, **blas: Any) -> Pair:
    describe = f"{interface.prefix}GetErrorString"
    return Pair(
        interface=interface,
        runtime=Api(library=fake_gpu.runtime(interface), describe=describe),
        blas=Api(library=fake_gpu.blas(interface, **blas), describe=interface.status_text),
    )


def test_bindings_are_importable_without_torch() -> None:
    imports = "from trainer.diagnostics.probes.c_api import trial; from trainer.diagnostics.probes.single import blas"
    source = f"import sys; sys.modules['torch'] = None; {imports}"
    root = Path(__file__).parents[6]
    assert subprocess.run([sys.executable, "-c", source], cwd=root, check=False).returncode == 0


@pytest.mark.parametrize("interface", [HIP, CUDA], ids=lambda interface: interface.kind)
def test_right_product_errs_by_rounding_only(fake_gpu: SimpleNamespace, interface: Interface) -> None:
    error = hip.sgemm_error(make_pair(fake_gpu, interface), ctypes.c_void_p(42))
    assert 0 < error < 1e-6


def test_wrong_product_shows(fake_gpu: SimpleNamespace) -> None:
    assert hip.sgemm_error(make_pair(fake_gpu, wrong=True), ctypes.c_void_p(42)) > 0.01


def test_product_that_is_never_written_shows_as_nan(fake_gpu: SimpleNamespace) -> None:
    assert math.isnan(hip.sgemm_error(make_pair(fake_gpu, silent=True), ctypes.c_void_p(42)))


def test_error_has_the_librarys_message(fake_gpu: SimpleNamespace) -> None:
    api = Api(library=fake_gpu.runtime(count_error=2), describe="hipGetErrorString")
    with pytest.raises(CallError, match="hipGetDeviceCount returned 2: the words for 2") as raised:
        api.integer("hipGetDeviceCount")
    assert raised.value.code == 2


def test_library_without_error_names_is_reported(fake_gpu: SimpleNamespace) -> None:
    api = Api(library=fake_gpu.runtime(count_error=2), describe="hipNoSuchFunction")
    with pytest.raises(CallError, match=r"libamdhip64\.so\.9 has no hipNoSuchFunction"):
        api.integer("hipGetDeviceCount")
