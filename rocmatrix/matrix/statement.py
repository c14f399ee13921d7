"""Base of all statements of the matrix: strict models, checked text, evidence, and selectors."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date
from functools import cache, lru_cache
from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from rocmatrix.matrix import gfx
from rocmatrix.runtime.errors import suggestion

# Words for a source that no reader can open again. A claim that is refuted may be quoted from such a place.
UNOPENABLE = re.compile(
    r"\bunnamed\b|\bcommunity notes\b|\bpublic how-to\b|^an? public \w+|^public Dockerfiles\b|\bgeneral knowledge\b"
    r"|\bdocument of an owner\b|^the metadata of\b|^[\w.-]+\.(?:com|org)$"
    r"|^\w+(?: \w+)? documentation(?: [\d.]+)?(?: \([^)]*\))?$",
    re.IGNORECASE,
)
# What an owner told this project alone: somebody ran it, and no reader can look it up.
FIRST_HAND = re.compile(r"^a first-hand report\b", re.IGNORECASE)

Confidence = Literal["verified in source", "reported", "derived", "measured here"]
Verdict = Literal["works", "degraded", "broken", "untested"]


def _version(text: str) -> str:
    try:
        Version(text)
    except InvalidVersion:
        raise PydanticCustomError("version", "'{text}' is not a version", {"text": text}) from None
    return text


def _range(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise PydanticCustomError("specifier", "'{text}' is not a version range", {"text": text}) from None
    return text


def _date(text: str) -> str:
    with suppress(ValueError):
        if text.startswith("20") and date.fromisoformat(text).isoformat() == text:
            return text
    raise PydanticCustomError("date", "'{text}' is not a date such as 2026-11-21", {"text": text})


def _schema(pattern: str) -> WithJsonSchema:
    """Return the JSON schema, for editors, of a text that Python checks."""
    return WithJsonSchema({"type": "string", "pattern": pattern})


Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
VersionText = Annotated[str, AfterValidator(_version), _schema(r"^\d+(\.\d+)*")]
RangeText = Annotated[str, AfterValidator(_range), _schema(r"^(~=|[=!<>]=|[<>]).+")]
Date = Annotated[str, AfterValidator(_date), _schema(r"^20\d{2}-\d{2}-\d{2}$")]
GfxName = Annotated[str, AfterValidator(gfx.checked), _schema(gfx.NAME_PATTERN)]
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Strict(BaseModel):
    """Frozen, no coercion, and an unknown key is an error that names the nearest known one."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="ignore",
        hide_input_in_errors=True,
        json_schema_extra={"additionalProperties": False},
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        known = _known_keys(cls)
        for key in data if isinstance(data, dict) else ():
            if key not in known:
                hint = suggestion(str(key), known)
                raise PydanticCustomError("unknown_key", "unknown key '{key}'; {hint}", {"key": key, "hint": hint})
        return data


@cache
def _known_keys(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in model.model_fields.items())


class Evidence(Strict):
    """Where a statement comes from. `sources` are addresses, issue numbers or file names."""

    sources: list[Text] = Field(min_length=1)
    confidence: Confidence
    date: Date

    @property
    def summary(self) -> str:
        """The evidence in one line: how sure, since when, and where it was read."""
        return f"{self.confidence} {self.date}: {', '.join(self.sources)}"


class Selector(Strict):
    """Which combinations a statement covers; an axis left out matches all.

    `given` is a circumstance that no axis shows, such as a second card in the machine. A statement with one
    is a caution: it holds only there, and states nothing of the combination as such.
    """

    architectures: list[GfxName] | None = None
    torch: RangeText | None = None
    rocm: RangeText | None = None
    package: Text | None = None
    given: Text | None = None

    def matches(self, *, architecture: str | None, torch: str, rocm: str | None, package: str | None = None) -> bool:
        """Return whether a combination falls under this selector. A CPU build has no `rocm`.

        Args:
            architecture: gfx name; None for the CPU.
            torch: version of torch, such as "2.12.1".
            rocm: ROCm version, such as "7.2"; None for a CPU build.
            package: name of a companion package; None for torch itself.
        """
        if self.package != package:
            return False
        if self.architectures is not None and architecture not in self.architectures:
            return False
        return within(torch, self.torch) and within(rocm, self.rocm)


def within(version: str | None, bounds: str | None) -> bool:
    """Return whether a version is within bounds: None bounds hold every version, and a None version is within none."""
    if bounds is None:
        return True
    return version is not None and _contains(bounds, version)


@lru_cache(maxsize=1 << 14)
def _contains(bounds: str, version: str) -> bool:
    # The same few ranges are asked of the same few versions for every cell; parsing them is what costs.
    return SpecifierSet(bounds).contains(version, prereleases=True)
