"""Codes of libraries and the kernel, and names of what a log misses, with what each means: codes.yaml and tables/."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal

from pydantic import Field, RootModel

from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.matrix.statement import Strict, Text
from rocmatrix.runtime.paths import ROOT

CODES_FILE = "rocmatrix/diagnosis/codes.yaml"
TABLES = "rocmatrix/diagnosis/tables"
Table = Literal[
    "hip", "hsa", "rocblas", "nccl", "errno", "library", "module", "cmake", "call", "api", "component",
    "abi", "header", "command", "package", "model", "suite", "symbol", "python",
]  # fmt: skip
# Long tables have a file each, so that a log that asks one of them does not pay for the others.
OWN_FILES: frozenset[Table] = frozenset({"abi", "header", "command", "package", "model", "suite", "symbol"})
RELEASES: Table = "python"  # by release in its file, as its rows differ in nothing else
# Asked first: signatures read names of both kinds.
BEFORE: dict[Table, Table] = {"module": "python", "cmake": "header", "symbol": "api"}


class Codes(Strict):
    """The codes of one library, keyed by number and name or by name alone, and where they are defined."""

    source: Text
    entries: dict[str, Text]


class Releases(Strict):
    """Names of one Python package by the release that brought them (`came`) or removed them (`went`).

    `known` are names of which more is stated than a release. A name has the module before it where it is not the
    package's own: `modeling_utils.shard_checkpoint`.
    """

    came: dict[str, list[Text]] = Field(default_factory=dict)
    went: dict[str, list[Text]] = Field(default_factory=dict)
    known: dict[str, Text] = Field(default_factory=dict)

    def rows(self, package: str) -> Iterator[tuple[str, str]]:
        """Yield each name, with the package before it, and what is known of it."""
        came = {name: release for release, names in self.came.items() for name in names}
        went = {name: release for release, names in self.went.items() for name in names}
        for name in (*came, *(name for name in went if name not in came)):
            stated = [f"came with {package} {came[name]}, so that an older one lacks it"] if name in came else []
            stated += [f"{package} {went[name]} removed it, so that a newer one lacks it"] if name in went else []
            yield f"{package}.{name}".lower(), "; ".join(stated)
        for name, text in self.known.items():
            yield f"{package}.{name}".lower(), text


class ByRelease(Strict):
    """The file of names by release: of each package, and where they are from."""

    source: Text
    packages: dict[str, Releases]


class Tables(RootModel[dict[Table, Codes]]):
    """All of rocmatrix/diagnosis/codes.yaml."""


# Other names that a code is looked up by: transformers.utils.x is also given out as transformers.x, the module
# torch._C._distributed_c10d is torch's, the linker's -lnuma is libnuma, and a program may have a folder before it.
_SHORTER: dict[Table, Callable[[str], tuple[str, ...]]] = {
    RELEASES: lambda key: (f"{key.split('.')[0]}.{key.split('.')[-1]}",),
    "module": lambda key: (key.split(".")[0],),
    "library": lambda key: (f"lib{key}",),
    "command": lambda key: (key.rsplit("/", 1)[-1],),
}


def meaning(table: Table, code: str) -> str | None:
    """Return what a code means, with its name where a number stands for one; None where the table does not have it.

    Args:
        table: the library whose codes are meant, or the kind of what is missing.
        code: a number, decimal or with 0x before it, or a name in any letter case; of a library the file name, for
            which both its number and its name are looked up; of Python a name with its package and module before it.
            An entry that ends with * holds for all that begin so.
    """
    key = code.strip().lower()
    tables = (BEFORE[table], table) if table in BEFORE else (table,)
    return next((stated for one in tables if (stated := _stated(one, key))), None)


def _stated(table: Table, key: str) -> str | None:
    known = _rows_of(table)
    if found := [known[name] for name in _names(key) if name in known]:
        return "; ".join(found)
    shorter = _SHORTER[table](key) if table in _SHORTER else ()
    beginnings = (name for name in sorted(known, reverse=True) if name[-1] == "*" and key.startswith(name[:-1]))
    return next((known[name] for name in (*shorter, *beginnings) if name in known), None)


def _names(key: str) -> list[str]:
    """Return the keys that a code stands under: of libamdhip64.so.6.1 libamdhip64.so.6, then libamdhip64."""
    if key.startswith("0x"):
        return [str(int(key, 16))]
    base, library, number = key.partition(".so")
    release = f"{base}.so.{number.split('.')[1]}" if number.startswith(".") and number[1:2].isdigit() else key
    return list(dict.fromkeys((release, base, base.split(".")[0]))) if library else [key]


@cache
def _rows_of(table: Table) -> dict[str, str]:
    file = f"{TABLES}/{table}.yaml"
    if table == RELEASES:
        packages = matrix_file.part(ROOT, file, ByRelease).packages
        return dict(row for name, releases in packages.items() for row in releases.rows(name))
    if table in OWN_FILES:
        return dict(_rows(matrix_file.part(ROOT, file, Codes)))
    return dict(_rows(_shared().root[table]))


@cache
def _shared() -> Tables:
    return matrix_file.part(ROOT, CODES_FILE, Tables)


def _rows(codes: Codes) -> list[tuple[str, str]]:
    rows = [(key.split(maxsplit=1), text) for key, text in codes.entries.items()]
    return [(key.lower(), f"{names[1]}: {text}" if names[1:] else text) for names, text in rows for key in names]
