"""What venv and pip write in addition to the packages, each by itself. Trees and wheels are SYNTHETIC."""

import io
import zipfile

import pytest

from rocmatrix.verify.files import environment
from rocmatrix.verify.files.environment import Environment
from rocmatrix.verify.files.tree import Row, Tree

SITE = "/opt/venv/lib/python3.12/site-packages"
LINES = [
    "home = /usr/bin",
    "include-system-site-packages = false",
    "version = 3.12.3",
    "executable = /usr/bin/python3.12",
    "command = /usr/bin/python3 -m venv /opt/venv",
]
FOUND = Environment(python="3.12")


def tree(*lines, texts=None):
    made = Tree()
    made.texts |= texts or {}
    if lines:
        made.texts["/opt/venv/pyvenv.cfg"] = b"\n".join(
            line if isinstance(line, bytes) else line.encode() for line in lines
        )
    return made


@pytest.mark.parametrize(
    ("lines", "python"),
    [
        (LINES, "3.12"),
        ([b"\xff", *LINES], "3.12"),
        (["version = 3.13.0rc1"], "3.13"),
        (["version = 3.12"], None),
        (["version = 2.7.1"], None),
        (["x version = 3.12.3"], None),
        (["version = 3.12.3", "version = 3.12.4"], None),
        ([], None),
    ],
)
def test_python_of_an_environment_is_the_one_of_its_configuration(lines, python):
    found = environment.of(tree(*lines))
    assert (found.python if found else None) == python


@pytest.mark.parametrize(
    ("lines", "own"),
    [
        (LINES, True),
        ([*LINES[:4], "command = /usr/bin/python3.12 -m venv /opt/venv"], True),
        ([*LINES[:2], "version = 3.12.3+dist", *LINES[3:]], True),
        ([*LINES, ""], True),  # a line's end
        ([*LINES, "x = y"], False),
        (LINES[:4], False),
        (LINES[::-1], False),
        ([*LINES[:2], "version = 3.13.3", *LINES[3:]], False),
        ([*LINES[:3], "executable = /usr/bin/python3x12", *LINES[4:]], False),
        ([*LINES[:4], "command = /usr/bin/python3 -m venv /opt/venv --copies"], False),
        ([b"\xff", *LINES[1:]], False),
        ([], False),
    ],
)
def test_configuration_is_venvs_line_for_line(lines, own):
    assert environment.configuration_is_venvs(tree(*lines), FOUND) is own


def test_folders_and_links_are_those_that_venv_makes():
    below = ("bin", "include", "include/python3.12", "lib", "lib/python3.12", "lib/python3.12/site-packages")
    assert FOUND.site == SITE
    assert FOUND.folders == {"/opt/venv", *(f"/opt/venv/{name}" for name in below)}
    assert FOUND.links == {
        "/opt/venv/bin/python3": {"/usr/bin/python3"},
        "/opt/venv/bin/python": {"python3"},
        "/opt/venv/bin/python3.12": {"python3"},
        "/opt/venv/lib64": {"lib"},
    }


def test_activation_scripts_are_the_templates_filled_in_with_and_without_quotes():
    template = b"__VENV_DIR__ __VENV_NAME__ __VENV_PROMPT__ __VENV_BIN_NAME__ __VENV_PYTHON__ __VENV_OTHER__"
    texts = {f"/usr/lib/python3.12/venv/scripts/{name}": template for name in ("common/activate", "nt/activate.bat")}
    found = environment.activation(tree(texts=texts | {"/etc/passwd": b""}))
    assert found == {
        "/opt/venv/bin/activate": {
            b"/opt/venv venv (venv)  bin /opt/venv/bin/python3 __VENV_OTHER__",
            b"/opt/venv venv '(venv) ' bin /opt/venv/bin/python3 __VENV_OTHER__",
        }
    }


@pytest.mark.parametrize(
    ("entry", "module", "name", "attribute"),
    [("m.n:f", "m.n", "f", "f"), ("m : C.run", "m", "C", "C.run"), ("m:f:g", "m", "f:g", "f:g")],
)
def test_command_has_one_of_the_texts_that_pip_has_written_by_one_of_the_pythons(entry, module, name, attribute):
    found = environment.commands({"x": entry}, FOUND)
    assert list(found) == ["/opt/venv/bin/x"]
    rest = f"from {module} import {name}\nif __name__ == '__main__':\n    "
    bodies = (
        f"# -*- coding: utf-8 -*-\nimport re\nimport sys\n{rest}"
        "sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n",
        f"import sys\n{rest}if sys.argv[0].endswith('.exe'):\n        sys.argv[0] = sys.argv[0][:-4]\n",
        f"import sys\n{rest}sys.argv[0] = sys.argv[0].removesuffix('.exe')\n",
    )
    assert found["/opt/venv/bin/x"] == {
        f"#!/opt/venv/bin/{python}\n{body}    sys.exit({attribute}())\n".encode()
        for python in ("python", "python3", "python3.12")
        for body in bodies
    }


def bundled_wheel(name, *, commands):
    buffer = io.BytesIO()
    about = f"{name}-24.0.dist-info"
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in (f"{name}/__init__.py", f"{about}/WHEEL", f"{about}/RECORD"):
            archive.writestr(path, "")
        archive.writestr(f"{about}/entry_points.txt", commands)
    return buffer.getvalue()


PLACES = ("/usr/share/python-wheels", "/usr/lib/python3.12/ensurepip/_bundled")


@pytest.mark.parametrize("place", PLACES)
def test_pip_of_the_distribution_is_named_by_the_versions_of_python(place):
    content = bundled_wheel("pip", commands="[console_scripts]\npip3 = pip.main:other\npip = pip.main:main\n")
    made = tree(texts={f"{place}/pip-24.0-py3-none-any.whl": content})
    made.rows[f"{SITE}/pip-24.0.dist-info/METADATA"] = Row(kind="file", mode=0o644, uid=0, gid=0)
    (found,) = environment.bundled(made, FOUND, locked=set())
    assert (found.file, found.about) == ("pip-24.0-py3-none-any.whl", f"{SITE}/pip-24.0.dist-info")
    assert f"{SITE}/pip/__init__.py" in found.files
    assert found.commands == dict.fromkeys(("pip", "pip3", "pip3.12"), "pip.main:main")
    assert environment.bundled(made, FOUND, locked={"pip"}) == []
    assert environment.bundled(made, Environment(python="3.13"), locked=set()) == []


def test_wheel_of_the_distribution_without_pips_command_keeps_its_own():
    content = bundled_wheel("setuptools", commands="[console_scripts]\neasy = a:b\n")
    made = tree(texts={f"{PLACES[0]}/setuptools-24.0-py3-none-any.whl": content, f"{PLACES[0]}/x-1-py3.whl": b""})
    made.rows[f"{SITE}/setuptools-24.0.dist-info/METADATA"] = Row(kind="file", mode=0o644, uid=0, gid=0)
    (found,) = environment.bundled(made, FOUND, locked={"pip"})
    assert (found.file, found.commands) == ("setuptools-24.0-py3-none-any.whl", {"easy": "a:b"})


def test_damaged_wheel_of_the_distribution_brings_nothing():
    made = tree(texts={f"{PLACES[0]}/pip-24.0-py3-none-any.whl": b"damaged"})
    made.rows[f"{SITE}/pip-24.0.dist-info/METADATA"] = Row(kind="file", mode=0o644, uid=0, gid=0)
    (found,) = environment.bundled(made, FOUND, locked=set())
    assert (found.file, found.about) == ("pip-24.0-py3-none-any.whl", f"{SITE}/pip-24.0.dist-info")
    assert (found.files, found.commands) == ({}, {})


@pytest.mark.parametrize(
    ("kind", "link", "same"), [("link", "a", True), ("link", "b", True), ("link", "c", False), ("file", "a", False)]
)
def test_link_leads_to_one_of_its_targets(kind, link, same):
    assert environment.is_link(Row(kind=kind, mode=0o777, uid=0, gid=0, link=link), {"a", "b"}) is same
