"""Codes of libraries and the kernel, and names of what a log misses, with what each means: codes.yaml."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import RootModel

from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.matrix.statement import Strict, Text
from rocmatrix.runtime.paths import ROOT

CODES_FILE = "rocmatrix/diagnosis/codes.yaml"
Table = Literal["hip", "hsa", "rocblas", "nccl", "errno", "library", "module", "cmake", "call", "component"]


class Codes(Strict):
    """The codes of one library, keyed by number and name or by name alone, and where they are defined."""

    source: Text
    entries: dict[str, Text]


class Tables(RootModel[dict[Table, Codes]]):
    """All of rocmatrix/diagnosis/codes.yaml."""


def meaning(table: Table, code: str) -> str | None:
    """Return what a code means, with its name where a number stands for one; None where the table does not have it.

    Args:
        table: the library whose codes are meant, or the kind of what is missing.
        code: a number, decimal or with 0x before it, or a name in any letter case.
    """
    key = code.strip().lower()
    return _by_key()[table].get(str(int(key, 16)) if key.startswith("0x") else key)


@cache
def _by_key() -> dict[Table, dict[str, str]]:
    tables = matrix_file.part(ROOT, CODES_FILE, Tables).root
    return {table: dict(_rows(codes)) for table, codes in tables.items()}


def _rows(codes: Codes) -> list[tuple[str, str]]:
    rows = [(key.split(maxsplit=1), text) for key, text in codes.entries.items()]
    return [(key.lower(), f"{names[1]}: {text}" if names[1:] else text) for names, text in rows for key in names]
