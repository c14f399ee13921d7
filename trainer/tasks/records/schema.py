"""The JSON Schema of metadata.json, from the dataclasses of each kind of task.

`python -m trainer schema` prints it; trainer/storage/metadata.schema.json is that output.
"""

from __future__ import annotations

from typing import Any

from trainer.storage.record_shape import schema_of
from trainer.tasks.records.language_schema import LanguageMetadata
from trainer.tasks.records.row_schema import Metadata


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of metadata.json. Further fields are allowed: later versions may add some."""
    definitions: dict[str, Any] = {}
    schema_of(Metadata, definitions)
    schema_of(LanguageMetadata, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "metadata.json of a run of the trainer",
        "if": {"required": ["task"], "properties": {"task": {"const": "language"}}},
        "then": {"$ref": "#/$defs/LanguageMetadata"},
        "else": {"$ref": "#/$defs/Metadata"},
        "$defs": definitions,
    }
