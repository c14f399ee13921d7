"""Of several Pythons the first stays, unless another's torch can be had and its own cannot."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rocmatrix.images.native import python_choice

PYTHONS = [("/usr/bin/python3", "3.13"), ("/usr/bin/python3.11", "3.11"), ("/usr/bin/python3.12", "3.12")]


@pytest.mark.parametrize(
    ("had", "chosen"),
    [
        ({"3.13"}, None),
        ({"3.11", "3.12", "3.13"}, None),
        (set(), None),
        ({"3.11"}, 1),
        ({"3.12"}, 2),
        ({"3.11", "3.12"}, 1),
    ],
)
def test_python_whose_torch_can_be_had_is_chosen(had: set[str], chosen: int | None) -> None:
    calls: list[tuple[str, bool]] = []

    def available(python: str, own_index: bool) -> bool:
        calls.append((python, own_index))
        return python in had

    found = python_choice.better(PYTHONS, available)
    assert found == (None if chosen is None else PYTHONS[chosen])
    assert calls[0] == ("3.13", True) and not any(own for _, own in calls[1:])


def test_version_is_that_of_the_interpreter_and_empty_for_what_is_none() -> None:
    assert python_choice.version_of(sys.executable) == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert python_choice.version_of("/bin/false") == python_choice.version_of("/nowhere/python3") == ""


def test_choice_is_printed_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, version in (("python3", "3.13"), ("python3.13", "3.13"), ("python3.12", "3.12"), ("broken", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '\"{version}\"'\n" if version else "#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(python_choice, "available_here", lambda: lambda python, own: python == "3.12")
    paths = [str(tmp_path / name) for name in ("python3", "python3.13", "broken", "python3.12")]
    assert python_choice.main(paths) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path}/python3.12\n"
    assert f"Python 3.13 ({tmp_path}/python3)" in printed.err
    python_choice.main(paths[:3])  # one version alone: nothing is asked
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("had", "chosen"),
    [
        ({"3.12", "3.13"}, None),  # .venv was made with the first of the list
        ({"3.12"}, None),
        ({"3.14"}, "python3.14"),
        ({"3.13"}, "python3.13"),
        ({"3.13", "3.14"}, "python3.14"),
    ],
)
def test_python_named_twice_keeps_its_first_place(
    had: set[str], chosen: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = {"python3": "3.12", "python3.14": "3.14", "python3.13": "3.13", "python3.12": "3.12"}
    monkeypatch.setattr(python_choice, "version_of", versions.__getitem__)
    monkeypatch.setattr(python_choice, "available_here", lambda: lambda python, own: python in had)
    assert python_choice.main(list(versions)) == 0  # as invokew lists them: python3 first, then by version
    printed = capsys.readouterr()
    assert printed.out == (f"{chosen}\n" if chosen else "")
    assert ("cannot be fetched for Python 3.12 (python3)" in printed.err) is (chosen is not None)
