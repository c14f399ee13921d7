"""Files that `python3 -m venv` and pip write in addition to packages: interpreter links, scripts, a configuration.

Nothing here is taken on trust from the environment itself. The activation scripts are made again from the templates
that the image's Python brings, and the wheel of pip that venv installs is the distribution's own: both lie outside the
environment, where `system` compares them.
"""

from __future__ import annotations

import io
import re
import shlex
import zipfile
from dataclasses import dataclass

from rocmatrix.verify.files import wheel
from rocmatrix.verify.files.tree import VENV, Row, Tree
from rocmatrix.verify.files.wheel import Wheel

CONFIGURATION = f"{VENV}/pyvenv.cfg"
BUNDLED = re.compile(r"/(?:share/python-wheels|ensurepip/_bundled)/((pip|setuptools)-[^/]+\.whl)$")
TEMPLATES = re.compile(r"/usr/lib/python3[0-9.]*/venv/scripts/(?:common|posix)/([^/]+)$")
_VERSION = re.compile(r"version = (?P<python>3\.\d+)\.\d+\S*")
# What pip writes for an entry point: up to 24; in between; and of late (pip/_internal/operations/install/wheel.py).
_COMMAND = (
    "#!{{python}}\n{first}import sys\nfrom {{module}} import {{name}}\n"
    "if __name__ == '__main__':\n    {strip}\n    sys.exit({{attribute}}())\n"
)
COMMANDS = (
    _COMMAND.format(
        first="# -*- coding: utf-8 -*-\nimport re\n",
        strip="sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])",
    ),
    _COMMAND.format(first="", strip="if sys.argv[0].endswith('.exe'):\n        sys.argv[0] = sys.argv[0][:-4]"),
    _COMMAND.format(first="", strip="sys.argv[0] = sys.argv[0].removesuffix('.exe')"),
)


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The environment's Python, such as 3.12, and where its packages lie."""

    python: str

    @property
    def site(self) -> str:
        """The folder of packages."""
        return f"{VENV}/lib/python{self.python}/site-packages"

    @property
    def links(self) -> dict[str, set[str]]:
        """Every symbolic link that venv makes, and where it may lead."""
        first = {f"{VENV}/bin/python3": {"/usr/bin/python3"}, f"{VENV}/lib64": {"lib"}}
        return first | {f"{VENV}/bin/{name}": {"python3"} for name in ("python", f"python{self.python}")}

    @property
    def folders(self) -> set[str]:
        """The folders that venv makes, whether or not they hold anything."""
        names = ("bin", "include", f"include/python{self.python}", "lib")
        return {VENV, self.site, f"{VENV}/lib/python{self.python}", *(f"{VENV}/{name}" for name in names)}


def of(tree: Tree) -> Environment | None:
    """Return what an image's environment is by its configuration; None where it has no configuration of venv's form."""
    found = [_VERSION.fullmatch(line) for line in tree.lines(CONFIGURATION)]
    versions = [match["python"] for match in found if match]
    return Environment(python=versions[0]) if len(versions) == 1 else None


def configuration_is_venvs(tree: Tree, environment: Environment) -> bool:
    """Return whether pyvenv.cfg, which decides where modules are found, holds the lines of venv and no other."""
    lines = tree.lines(CONFIGURATION)
    python = re.escape(environment.python)
    patterns = (
        r"home = /usr/bin",
        r"include-system-site-packages = false",
        rf"version = {python}\.\d+\S*",
        rf"executable = /usr/bin/python{python}",
        rf"command = /usr/bin/python3(\.\d+)? -m venv {VENV}",
    )
    return len(lines) == len(patterns) and all(map(re.fullmatch, patterns, lines))


def activation(tree: Tree) -> dict[str, set[bytes]]:
    """Return the activation scripts by path, each with the contents it may have."""
    made = {}
    for path, template in tree.texts.items():
        if match := TEMPLATES.fullmatch(path):
            made[f"{VENV}/bin/{match[1]}"] = {_filled(template, quote=quote) for quote in (False, True)}
    return made


def _filled(template: bytes, *, quote: bool) -> bytes:
    """Fill a template in as venv does; newer versions quote what they put in."""
    values = {"DIR": VENV, "NAME": "venv", "PROMPT": "(venv) ", "BIN_NAME": "bin", "PYTHON": f"{VENV}/bin/python3"}
    for name, value in values.items():
        template = template.replace(f"__VENV_{name}__".encode(), (shlex.quote(value) if quote else value).encode())
    return template


def commands(entries: dict[str, str], environment: Environment) -> dict[str, set[bytes]]:
    """Return the contents that pip may have written for entry points, by path."""
    return {f"{VENV}/bin/{name}": set(_texts(value, environment)) for name, value in entries.items()}


def _texts(entry: str, environment: Environment) -> list[bytes]:
    module, _, attribute = (part.strip() for part in entry.partition(":"))
    name = attribute.partition(".")[0]
    pythons = [f"{VENV}/bin/{python}" for python in ("python", "python3", f"python{environment.python}")]
    return [
        text.format(python=python, module=module, name=name, attribute=attribute).encode()
        for text in COMMANDS
        for python in pythons
    ]


def bundled(tree: Tree, environment: Environment, *, locked: set[str]) -> list[Wheel]:
    """Return the wheels that venv installs from the distribution, but those that the lock replaces.

    Args:
        locked: names of the packages that the lock replaces.
    """
    found = []
    for path, content in tree.texts.items():
        match = BUNDLED.search(path)
        if match and match[2] not in locked and f"{environment.site}/{_about(match[1])}/METADATA" in tree.rows:
            found.append(_with_versions(_opened(content, match[1], environment), environment))
    return found


def _about(file: str) -> str:
    return "-".join(file.split("-")[:2]) + ".dist-info"


def _opened(content: bytes, file: str, environment: Environment) -> Wheel:
    try:
        return wheel.opened(io.BytesIO(content), name=file, site=environment.site)
    except (zipfile.BadZipFile, ValueError, KeyError):
        return Wheel(file=file, about=f"{environment.site}/{_about(file)}", files={})  # all of it is of no wheel then


def _with_versions(found: Wheel, environment: Environment) -> Wheel:
    """Name pip's command as ensurepip does: by itself, by the major and by the whole version of Python."""
    if (main := found.commands.get("pip")) is None:
        return found
    names = ("pip", "pip3", f"pip{environment.python}")
    return Wheel(file=found.file, about=found.about, files=found.files, commands=dict.fromkeys(names, main))


def is_link(row: Row, targets: set[str]) -> bool:
    """Return whether a path is a symbolic link to one of `targets`."""
    return row.kind == "link" and row.link in targets
