"""Settings and device nodes of a compose service whose names are nearly right."""

import pytest

from rocmatrix.doctor.environment.files import settings
from rocmatrix.doctor.environment.launch import Launch


def of(name, *lines):
    launch = Launch(image="a", where="a:1", lines=((name, "a:2"), *lines))
    return [(note.rule, note.where, note.instead) for note in settings.of_service([name], launch)]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("device", "devices"), ("group-add", "group_add"), ("shm-size", "shm_size"), ("enviroment", "environment"),
        ("devices", None), ("x-device", None), ("env", None), ("<<", None), ("notes", None),
    ],
)  # fmt: skip
def test_setting_that_compose_refuses_is_an_error(name, near):
    assert of(name) == ([("setting-nearly-right", "a:2", near)] if near else [])


@pytest.mark.parametrize(
    ("node", "right"),
    [("/dev/fdk", "/dev/kfd"), ("/dev/dir", "/dev/dri"), ("/dev/kfd", None), ("/dev/dri", None), ("/dev/shm", None)],
)
def test_device_node_with_letters_in_another_order_is_an_error(node, right):
    assert of("devices", (node, "a:3")) == ([("device-nearly-right", "a:3", right)] if right else [])


@pytest.mark.parametrize(
    ("backend", "right"),
    [
        ("setuptools.backends._legacy:_Backend", "setuptools.build_meta"),
        ("hatchling.backend", "hatchling.build"),
        ("setuptools.build_meta", None), ("setuptools.build_meta:__legacy__", None), ("hatchling.build", None),
        ("poetry.core.masonry.api", None), ("setuptools_scm.build", None), ("", None),
    ],
)  # fmt: skip
def test_build_backend_that_its_project_lacks_is_an_error(backend, right):
    found = list(settings.of_build_backend(backend, "a:3"))
    assert [(note.rule, note.instead, note.fix.after) for note in found] == (
        [("build-backend-absent", right, right)] if right else []
    )
