"""Modules of NixOS as subjects: variables that they set, and what their services for AMD cards are given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rocmatrix.doctor.environment.dockerfile import read_text
from rocmatrix.doctor.environment.lint_input import Assignment, Subject

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SET = re.compile(r"(?<![\w.#])\"?(?P<name>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\"?\s*=\s*\"(?P<value>[^\"\n]*)\"\s*;")
_OVERRIDE = re.compile(r"\brocmOverrideGfx\s*=\s*\"(?P<value>[^\"\n]*)\"\s*;")  # of services.ollama


def of_nix(path: Path) -> tuple[Subject, ...]:
    """Return the variables of a module of NixOS, each set to a text. Raises RM310 where it cannot be read."""
    return (Subject(name=str(path), variables=tuple(_assigned(path)), compiles=True),)


def _assigned(path: Path) -> Iterator[Assignment]:
    source = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), read_text(path))
    for number, row in enumerate(source.splitlines(), 1):
        plain = row.partition("#")[0]
        where = f"{path}:{number}"
        for match in _SET.finditer(plain):
            yield Assignment(name=match["name"], value=match["value"].replace("${", "${_"), where=where)
        for match in _OVERRIDE.finditer(plain):
            yield Assignment(name="HSA_OVERRIDE_GFX_VERSION", value=match["value"], where=where)
