"""A room's modules as its registry."""

import importlib

from rocmatrix.runtime.registry import modules, registered


def test_modules_register_by_a_constant_and_others_are_left_out(tmp_path, monkeypatch):
    room = tmp_path / "some_room"
    room.mkdir()
    for name, text in {"__init__": "", "b": "KIND = 2\n", "a": "KIND = 1\n", "helper": "kind = 3\n"}.items():
        (room / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = importlib.import_module("some_room")
    assert [module.__name__ for module in modules(found)] == ["some_room.a", "some_room.b", "some_room.helper"]
    assert list(registered(found, "KIND")) == [1, 2]
