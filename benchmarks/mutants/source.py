"""What a score is of: a module's code without docstrings and comments, and the functions that a version changed."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator


def hash_of(code: bytes) -> str:
    """Return what a source is recorded by. Docstrings, comments and layout, which hold no mutants, do not count."""
    return hashlib.sha256(ast.dump(parsed(code)).encode()).hexdigest()[:16]


def parsed(code: bytes) -> ast.Module:
    """Return the tree of a module without docstrings."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def changed(before: bytes, now: bytes) -> list[str]:
    """Return the functions, by mutmut's names, that differ between two versions or use a name defined differently."""
    then, found = functions(before), functions(now)
    defined, redefined = definitions(before), definitions(now)
    names = {name for name in {*defined, *redefined} if defined.get(name) != redefined.get(name)}
    return [name for name, node in found.items() if _dump(then.get(name)) != _dump(node) or names & _used(name, node)]


def functions(code: bytes) -> dict[str, ast.FunctionDef]:
    """Return the functions of a module by mutmut's name of each: a method is xǁClassǁmethod."""
    found: dict[str, ast.FunctionDef] = {}
    for node in parsed(code).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"ǁ{node.name}ǁ" if isinstance(node, ast.ClassDef) else "_"
        found |= {f"x{prefix}{each.name}": each for each in inner if isinstance(each, ast.FunctionDef)}
    return found


def definitions(code: bytes) -> dict[str, str]:
    """Return what a module defines outside functions by its name: constants, imports, and classes without methods."""
    found: dict[str, str] = {}
    for node in parsed(code).body:
        for name, text in _defined(node):
            found[name] = found.get(name, "") + text
    return found


def _defined(node: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.ClassDef):
        node.body = [each for each in node.body if not isinstance(each, ast.FunctionDef)]
        yield node.name, ast.dump(node)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        origin = f"{node.level} {node.module}" if isinstance(node, ast.ImportFrom) else ""
        yield from ((each.asname or each.name, f"{origin} {each.name}") for each in node.names)
    elif not isinstance(node, ast.FunctionDef):
        inner = [each for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
        yield from ((each.id, ast.dump(node)) for each in inner)


def _used(name: str, node: ast.FunctionDef) -> set[str]:
    """Return the names that a function uses, with its class."""
    own = name.split("ǁ")[1:2]
    return {*own, *(each.id for each in ast.walk(node) if isinstance(each, ast.Name))}


def _dump(node: ast.FunctionDef | None) -> str:
    return ast.dump(node) if node else ""
