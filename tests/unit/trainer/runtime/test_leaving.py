"""The end of a process without Python's teardown: everything that a program relies on at its end has happened."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from trainer.runtime import leaving

PROGRAM = """
import atexit, sys, threading, time, types
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(is_initialized=lambda: False))
class Held:
    def __del__(self): print("torn down")
held = Held()
atexit.register(lambda: print("exit function"))
threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
from trainer.runtime.leaving import leave
leave(75)
"""


def test_threads_exit_functions_and_streams_come_before_the_end_and_the_teardown_does_not() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split("\n"), done.stderr) == (75, ["thread", "exit function", ""], "")


@pytest.mark.parametrize(
    ("initialized", "preloaded", "quick"), [(False, "", True), (True, "", False), (False, "x", False)]
)
def test_device_that_was_used_and_preloaded_libraries_end_as_python_does(
    monkeypatch: pytest.MonkeyPatch, initialized: bool, preloaded: str, quick: bool
) -> None:
    torch = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: initialized))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(sys, "gettrace", lambda: None)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    if preloaded:
        monkeypatch.setenv("LD_PRELOAD", preloaded)
    assert leaving.is_quick() is quick


def test_process_without_torch_ends_as_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(SystemExit) as ended:
        leaving.leave(2)
    assert ended.value.code == 2


def test_end_after_gloo_writes_streams_and_runs_neither_exit_functions_nor_destructors() -> None:
    program = PROGRAM.replace("import leave\n", "import leave_after_gloo as leave\nprint('work', end='')\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (75, "work", "")
