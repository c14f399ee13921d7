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
    return tuple(
        _group(path, source, name, table(rows), sources)
        for name, rows in {"dependencies": poetry["dependencies"], **groups}.items()
    )  # fmt: skip


def _group(
    path: Path, source: str, group: str, rows: Mapping[str, Any], sources: Mapping[str, Mapping[str, Any]]
) -> Subject:
    wanted = [(str(name), entry) for name, held in rows.items() if name != "python" for entry in _rows(held)]
    commands = tuple(_command(path, source, name, entry, sources) for name, entry in wanted)
    for_amd = any("rocm" in command.text for command in commands)
    torch = next((one.where for one, (name, _) in zip(commands, wanted, strict=True) if name == "torch"), None)
    bare = (note for one, (_, entry) in zip(commands, wanted, strict=True)
            for note in bare_rocm(str(entry.get("version", "")), one.where))  # fmt: skip
    return Subject(
        name=f"{path} {group}", commands=commands, for_amd=for_amd, where=torch or f"{path}:{_line(source, group)}",
        pairs=tuple(pair for one in commands for pair in installed(one.text, one.where)),
        notes=(*bare, *_triton(dict(wanted), sources, torch)),
    )  # fmt: skip


def _rows(held: Any) -> list[dict[str, Any]]:
    """Return what is asked of a package: a version alone, a table, or one table for each machine."""
    return [{"version": held}] if isinstance(held, str) else entries(held)


def _command(
    path: Path, source: str, name: str, entry: Mapping[str, Any], sources: Mapping[str, Mapping[str, Any]]
) -> Command:
    url = str(sources.get(str(entry.get("source")), {}).get("url", ""))
    address = entry.get("url") or (f"git+{entry['git']}" if "git" in entry else None)
    wanted = f"{name} @ {address}" if address else f"{name}{as_pip_writes(str(entry.get('version', '*')))}"
    words = ["pip", "install", *(["--index-url", url] if url else []), wanted]
    return Command(text=shlex.join(words), where=f"{path}:{_line(source, name)}")


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
    wanted: Mapping[str, Mapping[str, Any]], sources: Mapping[str, Mapping[str, Any]], torch: str | None
) -> Iterator[FileFinding]:
    """Yield torch from a source that serves only what is named with it, where its triton is not."""
    held = sources.get(str(wanted.get("torch", {}).get("source")), {})
    triton = triton_of(str(held.get("url", ""))) if held.get("priority") == "explicit" else None
    if torch is not None and triton is not None and triton not in wanted:
        yield without_triton(torch, triton, f'with source = "{held.get("name")}"')


def _line(source: str, name: str) -> int:
    """Return the line at which a dependency or a group is set."""
    found = re.search(rf"^[ \t]*(?:\[.*\b)?[\"']?{re.escape(name)}[\"']?(?:[ \t]*=|.*\][ \t]*$)", source, re.MULTILINE)
    return source.count("\n", 0, found.start()) + 1 if found else 1
