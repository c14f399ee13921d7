"""YAML read strictly, with the line of every key and value.

Plain YAML is too forgiving for a file of versions: a key given twice silently wins, 3.10 becomes
3.1, and an alias can make ten lines into a million nodes. This reader keeps the raw text and the
line of each scalar and refuses duplicate keys, anchors, aliases and tags.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from rocmatrix.errors import RocmatrixError

Path = tuple[str | int, ...]
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_constructor = yaml.constructor.SafeConstructor()
_CONSTRUCT: dict[str, Any] = {
    "int": _constructor.construct_yaml_int,
    "float": _constructor.construct_yaml_float,
    "bool": _constructor.construct_yaml_bool,
    "null": _constructor.construct_yaml_null,
}


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
    lines: dict[Path, int] = field(default_factory=dict)
    raw: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """Return the line of `path`, or of its nearest parent that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def problem(self, path: Path, message: str) -> Problem:
        """Return a `Problem` at the line of `path`."""
        return Problem(file=self.file, line=self.line(path), message=message)


def read(path: FilePath) -> Document:
    """Read one YAML file. Raises RM002 when it cannot be read; mistakes are in `problems`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RocmatrixError("RM002", what=f"cannot read {path.name}", where=str(path), why=str(error)) from error
    return parse(text, file=path.name)


def parse(text: str, *, file: str) -> Document:
    """Parse YAML text into a `Document`; no input makes it raise."""
    document = Document(file=file)
    if aliased := _alias_line(text, document):
        document.problems.append(aliased)
        return document
    try:
        node = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        document.problems.append(_syntax_problem(document, error))
        return document
    if node is not None:
        document.data = _convert(node, (), document)
    return document


def _alias_line(text: str, document: Document) -> Problem | None:
    """Find an anchor, alias or tag in the token stream, before any tree is built of it."""
    refused = (yaml.AnchorToken, yaml.AliasToken, yaml.TagToken)
    try:
        for token in yaml.scan(text, Loader=_Loader):
            if isinstance(token, refused):
                name = type(token).__name__.removesuffix("Token").lower()
                return Problem(
                    file=document.file,
                    line=token.start_mark.line + 1,
                    message=f"a YAML {name} is not allowed here",
                )
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return _syntax_problem(document, error)
    return None


def _syntax_problem(document: Document, error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    message = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error) or "nested too deeply"
    return Problem(file=document.file, line=mark.line + 1 if mark else 1, message=f"not YAML: {message}")


def _convert(node: yaml.Node, path: Path, document: Document) -> Any:
    document.lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, document)
    if isinstance(node, yaml.SequenceNode):
        return [_convert(child, (*path, index), document) for index, child in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, path, document)
    raise TypeError(f"YAML has no node of type {type(node).__name__}")


def _mapping(node: yaml.MappingNode, path: Path, document: Document) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else None
        if key is None or key in result:
            message = "a key must be plain text" if key is None else f"the key {key!r} stands here a second time"
            document.problems.append(Problem(file=document.file, line=line, message=message))
            continue
        document.lines[(*path, key)] = line
        result[key] = _convert(value_node, (*path, key), document)
    return result


def _scalar(node: yaml.ScalarNode, path: Path, document: Document) -> Any:
    document.raw[path] = node.value
    construct = _CONSTRUCT.get(node.tag.rsplit(":", 1)[-1])
    if construct is None:
        # Dates, binaries and merge keys stay text: the models decide what they accept.
        return node.value
    try:
        return construct(node)
    except (yaml.YAMLError, ValueError, KeyError, IndexError):
        return node.value
