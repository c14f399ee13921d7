"""YAML read strictly, with the line of every key and value.

Plain YAML is too forgiving for a file of versions: a key given twice silently wins, 3.10 becomes
3.1, and an alias can make ten lines into a million nodes. This reader keeps the raw text and the
line of each scalar and refuses duplicate keys, anchors, aliases and tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any

import yaml

from rocmatrix.runtime.errors import RocmatrixError

Path = tuple[str | int, ...]
DEEPEST = 40
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_constructor = yaml.constructor.SafeConstructor()
_CONSTRUCT: dict[str, Any] = {
    "int": _constructor.construct_yaml_int,
    "float": _constructor.construct_yaml_float,
    "bool": _constructor.construct_yaml_bool,
    "null": _constructor.construct_yaml_null,
}
# An anchor, alias or tag starts a token, so one of these stands before it, or the file begins with it. The
# whole token stream is only read where this finds something: it would take as long as all the rest.
_MAY_REFER = re.compile(r"(?:^|[\s\[{,:\ufeff])[&*!]")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One mistake and the line (from 1) at which it stands."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(kw_only=True)
class Document:
    """A YAML file as plain data, with the line and the raw text behind each path."""

    file: str
    data: Any = None
    root: yaml.Node | None = None
    problems: list[Problem] = field(default_factory=list)

    @cached_property
    def nodes(self) -> dict[Path, tuple[yaml.Node, yaml.Node]]:
        """The (place, value) nodes of each path. Only a mistake needs them, so only a mistake pays for them."""
        return dict(_walk((), self.root, self.root)) if self.root is not None else {}

    def line(self, path: Path) -> int:
        """Return the line of `path`, or of its nearest parent that has one."""
        while path and path not in self.nodes:
            path = path[:-1]
        return self.nodes[path][0].start_mark.line + 1 if path in self.nodes else 1

    def raw(self, path: Path) -> str | None:
        """Return the text of a scalar as it was written, None where `path` is none."""
        value = self.nodes[path][1] if path in self.nodes else None
        return str(value.value) if isinstance(value, yaml.ScalarNode) else None

    def problem(self, path: Path, message: str) -> Problem:
        """Return a `Problem` at the line of `path`."""
        return Problem(file=self.file, line=self.line(path), message=message)


def read_text(root: FilePath, name: str) -> str:
    """Return the text of the file `name` below `root`. Raises RM002 when it cannot be read."""
    path = root / name
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RocmatrixError("RM002", what=f"cannot read {name}", where=str(path), why=str(error)) from error


def parse(text: str, *, file: str) -> Document:
    """Parse YAML text into a `Document`; no input makes it raise."""
    document = Document(file=file)
    if _MAY_REFER.search(text) and (problem := _reference(text, document)):
        document.problems.append(problem)
        return document
    try:
        document.root = yaml.compose(text, Loader=_Loader)
        if document.root is not None:
            document.data = _convert(document.root, document)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        document.root = None
        document.problems.append(_syntax_problem(document, error))
    return document


def _reference(text: str, document: Document) -> Problem | None:
    """Find an anchor, alias or tag in the token stream, before any tree is built of it."""
    refused = (yaml.AnchorToken, yaml.AliasToken, yaml.TagToken)
    try:
        for token in yaml.scan(text, Loader=_Loader):
            if isinstance(token, refused):
                name = type(token).__name__.removesuffix("Token").lower()
                line = token.start_mark.line + 1
                return Problem(file=document.file, line=line, message=f"a YAML {name} is not allowed here")
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return _syntax_problem(document, error)
    return None


def _syntax_problem(document: Document, error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    message = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error) or "nested too deeply"
    return Problem(file=document.file, line=mark.line + 1 if mark else 1, message=f"not YAML: {message}")


def _convert(node: yaml.Node, document: Document, depth: int = 0) -> Any:
    if depth >= DEEPEST:
        raise RecursionError(f"nested {DEEPEST} deep or more")
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, document, depth)
    if isinstance(node, yaml.SequenceNode):
        return [_convert(child, document, depth + 1) for child in node.value]
    return _scalar(node) if isinstance(node, yaml.ScalarNode) else None


def _mapping(node: yaml.MappingNode, document: Document, depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else None
        if key is None or key in result:
            message = "a key must be plain text" if key is None else f"the key {key!r} stands here a second time"
            line = key_node.start_mark.line + 1
            document.problems.append(Problem(file=document.file, line=line, message=message))
            continue
        result[key] = _convert(value_node, document, depth + 1)
    return result


def _scalar(node: yaml.ScalarNode) -> Any:
    construct = _CONSTRUCT.get(node.tag.rsplit(":", 1)[-1])
    if construct is None:
        # Dates, binaries and merge keys stay text: the models decide what they accept.
        return node.value
    try:
        return construct(node)
    except (yaml.YAMLError, ValueError, KeyError, IndexError):
        return node.value


def _walk(path: Path, place: yaml.Node, value: yaml.Node) -> Iterator[tuple[Path, tuple[yaml.Node, yaml.Node]]]:
    """Yield every path below `value`. A value stands where its key does; of two equal keys the first counts."""
    if isinstance(value, yaml.MappingNode):
        for key, child in reversed(value.value):
            yield from _walk((*path, str(key.value)), key, child)
    elif isinstance(value, yaml.SequenceNode):
        for index, child in enumerate(value.value):
            yield from _walk((*path, index), child, child)
    yield path, (place, value)
