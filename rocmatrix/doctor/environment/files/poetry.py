"""A pyproject file of Poetry as subjects: its dependencies with versions as pip writes them, and their sources."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from rocmatrix.doctor.environment.dockerfile import installed
from rocmatrix.doctor.environment.files.pyproject import bare_rocm, entries, parsed, table, triton_of, without_triton
from rocmatrix.doctor.environment.lint_input import Command, FileFinding, Subject

_Lines = Mapping[tuple[str, str], int]
_TABLE = re.compile(r"^[ \t]*\[{1,2}(?P<table>[^\]\n]{1,200})\]")
_KEY = re.compile(r"^[ \t]*[\"']?(?P<name>[\w.-]{1,200})[\"']?[ \t]*=")
_VERSION = re.compile(r"(?P<sign>[\^~]?)\s*v?(?P<version>\d+(?:\.\d+)*)(?P<rest>.*)", re.DOTALL)


def of_poetry(path: Path) -> tuple[Subject, ...]:
    """Return the groups of a pyproject file that lists its dependencies for Poetry; none where it does not. Raises
    RM310, RM311."""
    source, root = parsed(path)
    poetry = table(table(root.get("tool")).get("poetry"))
    if not table(poetry.get("dependencies")) or "dependencies" in table(root.get("project")):
        return ()
    groups = {str(name): table(held).get("dependencies") for name, held in table(poetry.get("group")).items()}
    sources = {str(row.get("name")): row for row in entries(poetry.get("source"))}
    lines = _lines(source)
    base = _group(path, lines, "dependencies", table(poetry["dependencies"]), sources)
    return (
        base,
        *(_group(path, lines, f"group.{name}.dependencies", table(rows), sources) for name, rows in groups.items()),
    )


def _group(
    path: Path, lines: _Lines, group: str, rows: Mapping[str, Any], sources: Mapping[str, Mapping[str, Any]]
) -> Subject:
    places = {str(name): f"{path}:{lines.get((f'tool.poetry.{group}', str(name)), 1)}" for name in rows}
    requested = [(str(name), entry) for name, held in rows.items() if name != "python" for entry in _rows(held)]
    commands = tuple(_command(places[name], name, entry, sources) for name, entry in requested)
    for_amd = any("rocm" in command.text for command in commands)
    torch = next((one.where for one, (name, _) in zip(commands, requested, strict=True) if name == "torch"), None)
    bare = (note for one, (_, entry) in zip(commands, requested, strict=True)
            for note in bare_rocm(str(entry.get("version", "")), one.where))  # fmt: skip
    named = group.removeprefix("group.").removesuffix(".dependencies")
    table_at = f"{path}:{lines.get((f'tool.poetry.{group}', ''), 1)}"
    return Subject(
        name=f"{path} {named}", commands=commands, for_amd=for_amd, where=torch or table_at,
        pairs=tuple(pair for one in commands for pair in installed(one.text, one.where)),
        notes=(*bare, *_triton(dict(requested), sources, torch)),
    )  # fmt: skip


def _rows(held: Any) -> list[dict[str, Any]]:
    """Return what is asked of a package: a version alone, a table, or one table for each machine."""
    return [{"version": held}] if isinstance(held, str) else entries(held)


def _command(where: str, name: str, entry: Mapping[str, Any], sources: Mapping[str, Mapping[str, Any]]) -> Command:
    url = str(sources.get(str(entry.get("source")), {}).get("url", ""))
    address = entry.get("url") or (f"git+{entry['git']}" if "git" in entry else None)
    requested = f"{name} @ {address}" if address else f"{name}{as_pip_writes(str(entry.get('version', '*')))}"
    words = ["pip", "install", *(["--index-url", url] if url else []), requested]
    return Command(text=shlex.join(words), where=where)


def as_pip_writes(version: str) -> str:
    """Return versions in Poetry's form, ^2.4 or ~2.4, as pip has them; "" for any, and for what pip cannot write."""
    if "||" in version:
        return ""
    try:
        return str(SpecifierSet(",".join(part for one in version.split(",") if (part := _range(one.strip())))))
    except InvalidSpecifier:
        return ""


def _range(one: str) -> str:
    found = _VERSION.fullmatch(one)
    if found is None or not found["sign"]:
        return "" if one in ("*", "") else f"=={one}" if found else one
    parts = [int(part) for part in found["version"].split(".")]
    fixed = next((at for at, part in enumerate(parts) if part), len(parts) - 1)  # of ^, what may not change
    at = fixed if found["sign"] == "^" else min(1, len(parts) - 1)
    above = ".".join(map(str, [*parts[:at], parts[at] + 1]))
    return f">={found['version']},<{above}"


def _triton(
    requested: Mapping[str, Mapping[str, Any]], sources: Mapping[str, Mapping[str, Any]], torch: str | None
) -> Iterator[FileFinding]:
    """Yield torch from a source that serves only what is named with it, where its triton is not."""
    held = sources.get(str(requested.get("torch", {}).get("source")), {})
    triton = triton_of(str(held.get("url", ""))) if held.get("priority") == "explicit" else None
    if torch is not None and triton is not None and triton not in requested:
        yield without_triton(torch, triton, f'with source = "{held.get("name")}"')


def _lines(source: str) -> dict[tuple[str, str], int]:
    """Return the line of every key by its table and name, and that of the table itself under no name."""
    found: dict[tuple[str, str], int] = {}
    table = ""
    for number, row in enumerate(source.splitlines(), 1):
        if head := _TABLE.match(row):
            table = head["table"].replace('"', "").replace("'", "")
            found.setdefault((table, ""), number)
        elif key := _KEY.match(row):
            found.setdefault((table, key["name"]), number)
    return found
