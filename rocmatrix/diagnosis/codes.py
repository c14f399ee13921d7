"""Codes of libraries and the kernel, and names of what a log misses, with what each means: codes.yaml."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import RootModel

from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.matrix.statement import Strict, Text
from rocmatrix.runtime.paths import ROOT

CODES_FILE = "rocmatrix/diagnosis/codes.yaml"
Table = Literal["hip", "hsa", "rocblas", "nccl", "errno", "library", "module", "cmake", "call", "api", "component"]


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
        code: a number, decimal or with 0x before it, or a name in any letter case; of a library the file name, for
            which both its number and its name are looked up. An entry that ends with * holds for all that begin so.
    """
    key = code.strip().lower()
    known = _by_key()[table]
    stated = [known[name] for name in _names(key) if name in known]
    if not stated:
        stated = [known[name] for name in sorted(known, reverse=True) if name[-1] == "*" and key.startswith(name[:-1])]
        return stated[0] if stated else None
    return "; ".join(stated)


def _names(key: str) -> list[str]:
    """Return the keys that a code stands under: of libamdhip64.so.6.1 libamdhip64.so.6, then libamdhip64."""
    if key.startswith("0x"):
        return [str(int(key, 16))]
    base, library, number = key.partition(".so")
    release = f"{base}.so.{number.split('.')[1]}" if number.startswith(".") and number[1:2].isdigit() else key
    return list(dict.fromkeys((release, base, base.split(".")[0]))) if library else [key]


@cache
def _by_key() -> dict[Table, dict[str, str]]:
    tables = matrix_file.part(ROOT, CODES_FILE, Tables).root
    return {table: dict(_rows(codes)) for table, codes in tables.items()}


def _rows(codes: Codes) -> list[tuple[str, str]]:
    rows = [(key.split(maxsplit=1), text) for key, text in codes.entries.items()]
    return [(key.lower(), f"{names[1]}: {text}" if names[1:] else text) for names, text in rows for key in names]
