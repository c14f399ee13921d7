"""The frames of a traceback name the package that raised an exception, and the one that called it."""

import pytest

from rocmatrix.diagnosis.search.frames import MOST_LINES, is_ignored, packages

START = b"Traceback (most recent call last):"


def frame(path):
    return b'  File "' + path + b'", line 7, in call'


VLLM = frame(b"/venv/lib/python3.12/site-packages/vllm/worker.py")
AITER = frame(b"/usr/local/lib/python3.12/dist-packages/aiter/jit/core.py")


def test_last_package_raised_and_the_one_before_called():
    assert packages([START, VLLM, b"    run()", AITER, b"    x()"]) == {"raised": "aiter", "caller": "vllm"}


def test_package_alone_has_no_caller():
    assert packages([START, AITER, AITER]) == {"raised": "aiter"}


def test_own_file_that_raised_names_no_package():
    assert packages([START, AITER, frame(b"/home/me/train.py")]) == {}
    assert packages([b"no frames here"]) == {}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (b"C:\\\\venv\\\\Lib\\\\site-packages\\\\diffusers\\\\models\\\\a.py", "diffusers"),
        (b"C:\\venv\\Lib\\site-packages\\diffusers\\models\\a.py", "diffusers"),
        (b"/sgl-workspace/aiter/aiter/jit/core.py", "aiter"),
        (b"/ComfyUI/custom_nodes/ComfyUI-GGUF/nodes.py", "ComfyUI-GGUF"),
    ],
)
def test_package_of_windows_paths_checkouts_and_plugins(path, name):
    assert packages([START, frame(path)])["raised"] == name


def test_frames_of_an_earlier_traceback_do_not_count():
    assert packages([START, VLLM, b"KeyError: 1", b"During handling of the above exception", START, AITER]) == {
        "raised": "aiter"
    }


def test_frames_are_read_from_lines_near_the_exception_alone():
    assert packages([VLLM, *[b"x"] * MOST_LINES]) == {}


def test_ignored_exception_ends_with_its_own_line():
    ignored = [b"Exception ignored in: <function f>", START, AITER]
    assert is_ignored(ignored)
    assert not is_ignored([*ignored, b"AttributeError: x"])
    assert not is_ignored([START, AITER])
