"""Dataclasses and JSON: the schema of a type, and a value read as it."""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a type; dataclasses go into `definitions`, and are referred to."""
    if is_dataclass(kind):
        name = getattr(kind, "__name__", "")
        if name not in definitions:
            definitions[name] = {}  # its place, before the fields that it is made of
            definitions[name] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{name}"}
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return {"const": inside[1]}
    if origin is list:
        return {"type": "array", "items": schema_of(inside[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inside[1], definitions)}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [schema_of(each, definitions) for each in inside]}
    return {} if kind is Any else {"type": _NAMES[kind]}


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": {name: schema_of(hint, definitions) for name, hint in hints.items()},
        "required": [field.name for field in _required(kind)],
    }


def read_as(kind: Any, value: Any, path: str) -> Any:
    """Return a JSON value as the type `kind`. Raises ValueError naming `path` below which it does not fit.

    Args:
        kind: a type: a dataclass, a union, a container, or one of JSON's own.
        value: as `json.loads` returned it.
        path: place of `value` in the document, for the message.
    """
    origin, inside = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _read_object(kind, value, path)
    if origin is Annotated:
        return read_as(inside[0], value, path)
    if origin is list and isinstance(value, list):
        return [read_as(inside[0], each, f"{path}[{index}]") for index, each in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {name: read_as(inside[1], each, f"{path}.{name}") for name, each in value.items()}
    if origin in (types.UnionType, typing.Union) and (fitting := [each for each in inside if _fits(each, value)]):
        return read_as(fitting[0], value, path)
    if kind is Any or _is(value, inside if origin in (types.UnionType, typing.Union) else (kind,)):
        return value
    raise ValueError(f"{path.lstrip('.')} is {type(value).__name__}")


def _read_object(kind: Any, value: Any, path: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{path.lstrip('.') or 'the file'} is no object")
    hints = get_type_hints(kind, include_extras=True)
    if missing := [field.name for field in _required(kind) if field.name not in value]:
        raise ValueError(f"{path}.{missing[0]} is missing".lstrip("."))
    there = {name: hint for name, hint in hints.items() if name in value}
    return kind(**{name: read_as(hint, value[name], f"{path}.{name}") for name, hint in there.items()})


def _required(kind: Any) -> list[dataclasses.Field[Any]]:
    """Return the fields that no file lacks; those with a default came later."""
    return [field for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]


def _fits(kind: Any, value: Any) -> bool:
    """Return whether a value is the list, the mapping or the object that one kind of a union is."""
    return (get_origin(kind) is list and isinstance(value, list)) or (
        (is_dataclass(kind) or get_origin(kind) is dict) and isinstance(value, dict)
    )


def _is(value: Any, kinds: tuple[Any, ...]) -> bool:
    """Return whether a JSON value is of a kind: a whole number is a number, but true is not."""
    if isinstance(value, bool):
        return bool in kinds
    return any(isinstance(value, (int, float) if kind is float else kind) for kind in kinds if isinstance(kind, type))
