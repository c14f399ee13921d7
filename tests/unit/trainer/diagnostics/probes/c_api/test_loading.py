from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.diagnostics.probes.c_api import loading as libraries
from trainer.diagnostics.probes.c_api.loading import LibraryError, load


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for packages of which nothing is installed yet, and no ROCm elsewhere."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "opt-rocm"))
    return tmp_path


def put(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_wheels_come_first_then_the_loader_then_rocms_folder(site: Path) -> None:
    wheel = put(site / "_rocm_sdk_core" / "lib" / "libamdhip64.so.7")
    system = put(site / "opt-rocm" / "lib" / "libamdhip64.so.6")
    order = list(libraries.candidates("amdhip64"))
    assert order[:3] == [str(wheel), "libamdhip64.so", "libamdhip64.so.20"]
    assert order[-1] == str(system)
    assert {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so.0"} <= set(order)


def test_cudas_wheels_are_found_too(site: Path) -> None:
    wheel = put(site / "nvidia" / "cublas" / "lib" / "libcublas.so.12")
    assert next(libraries.candidates("cublas")) == str(wheel)


def test_library_that_is_nowhere_is_not_installed(site: Path) -> None:
    with pytest.raises(LibraryError, match="libnowhere is not installed"):
        load("nowhere")


def test_broken_file_is_not_passed_over(site: Path) -> None:
    put(site / "_rocm_sdk_core" / "lib" / "libamdhip64.so.7", b"version https://git-lfs.github.com/spec/v1")
    with pytest.raises(LibraryError, match="libamdhip64 is there and does not load"):
        load("amdhip64")


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler to make a library with")
def test_missing_dependency_is_distinguished_from_a_missing_library(site: Path) -> None:
    folder = put(site / "_rocm_sdk_core" / "lib" / "dep.c", b"int dep(void) { return 1; }").parent
    put(folder / "top.c", b"int dep(void); int top(void) { return dep() + 41; }")
    for command in (["-o", "libdep.so", "dep.c"], ["-o", "libtop.so", "top.c", "-L.", "-ldep", "-Wl,-rpath,$ORIGIN"]):
        subprocess.run(["cc", "-shared", "-fPIC", *command], cwd=folder, check=True)
    loaded = load("top")
    assert (loaded.handle.top(), loaded.path) == (42, folder / "libtop.so")
    # libdep stays mapped in this process, so only a new one can miss it
    (folder / "libdep.so").unlink()
    loading = "from trainer.diagnostics.probes.c_api.loading import load; load('top')"
    source = f"import sys; sys.path.insert(0, {str(site)!r}); {loading}"
    root = Path(__file__).parents[6]
    failed = subprocess.run([sys.executable, "-c", source], cwd=root, check=False, capture_output=True, text=True)
    assert "libtop is there and does not load: libdep.so" in failed.stderr


def test_mapped_file_is_found() -> None:
    ctypes.CDLL("libc.so.6")
    assert str(libraries.loaded_path("c")).endswith("/libc.so.6")
    assert libraries.loaded_path("nowhere") is None
