"""The schema that editors complete from describes the files as they are, and refuses what the loader refuses."""

import copy
import json
import re
from pathlib import Path

import pytest
import yaml

from rocmatrix.cli import generated_docs
from rocmatrix.matrix.loading import load as matrix_file

ROOT = Path(__file__).resolve().parents[5]
SCHEMA = json.loads(generated_docs.matrix_schema())
FILES = {"": matrix_file.MAIN_FILE, **matrix_file.PART_FILES}
DATA = {part: yaml.load((ROOT / file).read_text(), Loader=yaml.CSafeLoader) for part, file in FILES.items()}
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def errors(value, schema, path="$"):
    """Yield where `value` breaks `schema`: the part of JSON Schema that pydantic's models use."""
    if "$ref" in schema:
        yield from errors(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], path)
    elif "anyOf" in schema:
        if all(list(errors(value, option, path)) for option in schema["anyOf"]):
            yield path
    elif "const" in schema or "enum" in schema:
        if value not in schema.get("enum", [schema.get("const")]):
            yield path
    elif not isinstance(value, TYPES[schema["type"]]):
        yield path
    elif isinstance(value, dict):
        yield from object_errors(value, schema, path)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield path
        for index, item in enumerate(value):
            yield from errors(item, schema["items"], f"{path}[{index}]")
    elif isinstance(value, str) and not fits(value, schema):
        yield path


def fits(text, schema):
    return re.search(schema.get("pattern", ""), text) and len(text) >= schema.get("minLength", 0)


def object_errors(value, schema, path):
    properties = schema.get("properties", {})
    yield from (f"{path}.{name}" for name in schema.get("required", []) if name not in value)
    for name, item in value.items():
        patterns = [s for pattern, s in schema.get("patternProperties", {}).items() if re.search(pattern, name)]
        more = schema.get("additionalProperties", not schema.get("patternProperties"))
        if name in properties or patterns:
            yield from errors(item, (patterns or [properties.get(name)])[0], f"{path}.{name}")
        elif more is False:
            yield f"{path}.{name}"
        elif isinstance(more, dict):
            yield from errors(item, more, f"{path}.{name}")


def schema_of(part):
    return SCHEMA["$defs"][part] if part else SCHEMA


@pytest.mark.parametrize("part", FILES)
def test_schema_accepts_the_shipped_file(part):
    assert list(errors(DATA[part], schema_of(part))) == []


@pytest.mark.parametrize("part", [part for part in FILES if part not in ("wheels", "locks")])
def test_file_names_its_own_schema_in_its_first_line(part):
    file = ROOT / FILES[part]
    found = re.match(r"# yaml-language-server: \$schema=([^#\s]+)(?:#/\$defs/(\w+))?\n", file.read_text())
    assert found, file
    assert (file.parent / found[1]).resolve() == ROOT / generated_docs.SCHEMA_FILE
    assert (found[2] or "") == part


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("", lambda data: data["cells"][0].update(recomended=True)),
        ("", lambda data: data["cells"][0].pop("evidence")),
        ("", lambda data: data.update(rules=[])),
        ("rules", lambda data: data[0]["evidence"].update(sources=[])),
        ("rules", lambda data: data[0].update(verdict="fine")),
        ("rules", lambda data: data[0]["when"].update(torch="=2")),
        ("releases", lambda data: data[1]["torch"].update({"2.x": {}})),
        ("releases", lambda data: data[1].update(rocm=[6.1])),
        ("architectures", lambda data: data["gfx906"].pop("family")),
        ("libraries", lambda data: data["hipblaslt"][0].update(accepted=["gfx90"])),
    ],
)
def test_schema_refuses_what_the_loader_refuses(part, change):
    data = copy.deepcopy(DATA[part])
    change(data)
    assert list(errors(data, schema_of(part)))


def test_schema_references_lead_somewhere():
    names = re.findall(r'"#/\$defs/([^"]+)"', json.dumps(SCHEMA))
    assert names
    assert set(names) <= set(SCHEMA["$defs"])
