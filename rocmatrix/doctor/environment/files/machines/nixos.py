"""Modules of NixOS as subjects: variables that they set, and what their services for AMD cards are given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rocmatrix.doctor.environment.dockerfile import read_text
from rocmatrix.doctor.environment.lint_input import Assignment, FileFinding, Subject

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SET = re.compile(r"(?<![\w.#])\"?(?P<name>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\"?\s*=\s*\"(?P<value>[^\"\n]*)\"\s*;")
_OVERRIDE = re.compile(r"\brocmOverrideGfx\s*=\s*\"(?P<value>[^\"\n]*)\"\s*;")  # of services.ollama
_OLLAMA = re.compile(r"\bservices\.ollama\b|\bollama\s*=\s*\{")
_BUILDS = re.compile(r"mkDerivation|overrideAttrs|\.override\b|buildInputs|mkShell")
# options of services.ollama that NixOS has removed: what a line begins with, since when, what stands there now
_REMOVED = (
    ("listenAddress", "24.11", "services.ollama.host and services.ollama.port"),
    ("acceleration", "26.05", "services.ollama.package = pkgs.ollama-rocm;"),
)


def of_nix(path: Path) -> tuple[Subject, ...]:
    """Return the variables of a module of NixOS, each set to a text. Raises RM310 where it cannot be read."""
    found = tuple(_assigned(path))
    source = read_text(path)
    runs = _OLLAMA.search(source) and not _BUILDS.search(source)  # a service alone, of which nothing is compiled
    return (Subject(name=str(path), variables=found, compiles=not runs, notes=tuple(_removed(path))),)


def _removed(path: Path) -> Iterator[FileFinding]:
    """Yield options of Ollama's service that newer releases of NixOS refuse."""
    source = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), read_text(path))
    rows = [row.partition("#")[0] for row in source.splitlines()] if _OLLAMA.search(source) else []
    for name, release, instead in _REMOVED:
        line = re.compile(rf"^\s*(?:services\.ollama\.)?{name}\s*=(?!=)")
        number = next((number for number, row in enumerate(rows, 1) if line.match(row)), None)
        if number is not None:
            yield FileFinding(
                rule="nixos-option-removed", where=f"{path}:{number}", what=name, severity="note",
                truth=f"NixOS {release} has removed that option of services.ollama: the configuration is refused there",
                instead=instead,
            )  # fmt: skip


def _assigned(path: Path) -> Iterator[Assignment]:
    source = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), read_text(path))
    for number, row in enumerate(source.splitlines(), 1):
        plain = row.partition("#")[0]
        where = f"{path}:{number}"
        for match in _SET.finditer(plain):
            yield Assignment(name=match["name"], value=match["value"].replace("${", "${_"), where=where)
        for match in _OVERRIDE.finditer(plain):
            yield Assignment(name="HSA_OVERRIDE_GFX_VERSION", value=match["value"], where=where)
