"""`.kpack` archives: the device code of one architecture or family, split from its host libraries.

Layout: `KPAK`, version, offset of the table, then data; the table at the end is MessagePack. Source:
ROCm/rocm-kpack@e3483286 python/rocm_kpack/kpack.py and runtime/src/toc_parser.cpp, now ROCm/rocm-systems
shared/kpack.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from typing import Any, BinaryIO

from rocmatrix.verify.devicecode.code import CodeObject
from rocmatrix.verify.devicecode.reading import DamagedError, read_at
from rocmatrix.verify.devicecode.target import Target, parse

MAGIC = b"KPAK"
VERSION = 1
_HEADER = struct.Struct("<4sIQ")


def read(file: BinaryIO) -> list[CodeObject]:
    """Return the code by target, its sizes summed over the libraries it comes from. Raises `DamagedError`.

    A target that the archive lists but holds no kernel for is damage as well: it would pass for present.
    """
    table = _table(file)
    named = {_target(text) for text in _typed(table, "gfx_arches", list)}
    sizes = _sizes(_typed(table, "toc", dict))
    if missing := named - set(sizes):
        raise DamagedError(f"it lists {', '.join(map(str, sorted(missing)))}, but holds no kernel for it")
    return [CodeObject(target=t, size=sizes[t], evidence="archive contents") for t in sorted(sizes)]


def _table(file: BinaryIO) -> dict[str, Any]:
    import msgpack

    _, version, offset = _HEADER.unpack(read_at(file, 0, _HEADER.size, "an archive's header"))
    if version != VERSION:
        raise DamagedError(f"an archive of version {version}, known is {VERSION}")
    end = file.seek(0, os.SEEK_END)
    raw = read_at(file, offset, max(end - offset, 0), "an archive's table")
    try:
        table = msgpack.unpackb(raw, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.exceptions.UnpackException) as error:
        raise DamagedError(f"an archive's table: {error}") from error
    if not isinstance(table, dict):
        raise DamagedError("an archive's table is no map")
    return table


def _typed(table: dict[str, Any], key: str, kind: type) -> Any:
    value = table.get(key)
    if not isinstance(value, kind):
        raise DamagedError(f"an archive's table has no {kind.__name__} {key!r}")
    return value


def _sizes(libraries: dict[Any, Any]) -> Counter[Target]:
    sizes: Counter[Target] = Counter()
    for kernels in libraries.values():
        if not isinstance(kernels, dict):
            raise DamagedError("an archive's table lists a library without kernels")
        for name, about in kernels.items():
            size = about.get("original_size", 0) if isinstance(about, dict) else None
            if not isinstance(size, int) or size < 0:
                raise DamagedError(f"an archive's table describes {name!r} wrongly")
            sizes[_target(name)] += size
    return sizes


def _target(text: object) -> Target:
    target = parse(text) if isinstance(text, str) else None
    if target is None:
        raise DamagedError(f"an archive's table names {text!r}, which is no target")
    return target
