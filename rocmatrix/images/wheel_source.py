"""Source of a wheel's hash: stated by an index, or computed here; and what is refused."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from html import unescape
from http.client import HTTPException
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

from packaging.utils import canonicalize_name

from rocmatrix.images.pip_report import Resolved
from rocmatrix.matrix.matrix import Wheel
from rocmatrix.runtime.errors import RocmatrixError

# Channels that serve candidates: a released file of the same name may have other bytes.
UNRELEASED = ("/whl/test/", "/whl/nightly/", "nightlies.amd.com", "prereleases.amd.com", "devreleases.amd.com")
NIGHTLY_KEPT = timedelta(days=120)
CHUNK_BYTES = 1 << 20
PATIENCE_SECONDS = 10
PYTHON_SOURCE = "the Python package index, as pip reported it"
# What a release's own index serves; everything else is taken from the Python package index.
_STACK = re.compile(r"^(torch|torchvision|torchaudio|(pytorch-)?triton(-rocm)?|rocm(-.+)?|amd-torch-.+)$")
# PyTorch's index links to a second host of the same files.
_STORAGE = {"download.pytorch.org": "download-r2.pytorch.org"}
_BUILT_ON = re.compile(r"(?:\.dev|a)(20\d{2})(\d{2})(\d{2})")


def of_stack(name: str) -> bool:
    """Return whether a package belongs to torch and ROCm, and so to the release's own index."""
    return bool(_STACK.match(canonicalize_name(name)))


def refuse_unreleased(file: str, places: Iterable[str], *, today: date) -> None:
    """Raise RM106 where a file or its hash is from a channel of candidates, RM107 where that has expired.

    Args:
        file: name of the wheel.
        places: URLs of the wheel and of the page with its hash.
        today: date that expiry is compared with.
    """
    for place in places:
        if any(channel in f"{place}/" for channel in UNRELEASED):
            built = _BUILT_ON.search(file)
            if built and today - date(*map(int, built.groups())) > NIGHTLY_KEPT:
                why = f"built {'-'.join(built.groups())}; such an index keeps a file for {NIGHTLY_KEPT.days} days"
                raise RocmatrixError("RM107", what=file, where=place, why=why)
            raise RocmatrixError("RM106", what=file, where=place)


def wheel(row: Resolved, *, index: str | None, today: date) -> Wheel:
    """Describe a file that pip chose, with the place its hash was read.

    `index` is the release's own, None where only the configured sources were asked. Raises RM104 where the file
    is needed for its hash and cannot be read, RM106, RM107, and RM108 where another host serves torch or ROCm.

    Args:
        index: URL of the release's own index; None where only the configured sources were asked.
        today: date of the record.
    """
    refuse_unreleased(row.file, [row.url, index or row.url], today=today)
    if index is None or not of_stack(row.name):
        if row.sha256 is None:
            return _measured(row, index="python", today=today)
        return _wheel(row, row.sha256, index="python", source=PYTHON_SOURCE)
    if not _served_by(index, row.url):
        why = f"pip chose {row.url}; a package of that name elsewhere is not the one"
        raise RocmatrixError("RM108", what=row.file, where=index, why=why)
    if (served := served_hash(index, row)) is not None:
        return _wheel(row, served, index="pytorch", source=f"{_place(index)}, as the index states it")
    return _measured(row, index="pytorch", today=today)


def _wheel(row: Resolved, sha256: str, *, index: str, source: str, confidence: str = "verified in source") -> Wheel:
    return Wheel.model_validate(
        {"name": row.name, "version": row.version, "sha256": sha256, "index": index, "sources": [source],
         "confidence": confidence}
    )  # fmt: skip


def _measured(row: Resolved, *, index: str, today: date) -> Wheel:
    # Where the index gives no hash, pip computes one of the file it fetched, if it fetched more than metadata.
    source = f"{unquote(_place(row.url))} itself, hash computed {today.isoformat()}"
    digest = row.sha256 or computed_hash(row.url)
    return _wheel(row, digest, index=index, source=source, confidence="measured here")


def _place(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.netloc}{parts.path}".rstrip("/") if parts.netloc else parts.path.rpartition("/")[2]


def _served_by(index: str, url: str) -> bool:
    host, found = urlsplit(index).netloc, urlsplit(url).netloc
    return found in (host, _STORAGE.get(host))


def served_hash(index: str, row: Resolved) -> str | None:
    """Return the sha256 that the page of an index gives for a file, None where it gives none. Raises RM104."""
    page = f"{index.rstrip('/')}/{canonicalize_name(row.name)}/"
    if page.startswith("file:"):
        page += "index.html"
    for link in re.findall(r'href="([^"]+)"', _read(page).decode(errors="replace")):
        address, _, fragment = unescape(link).partition("#")
        if unquote(address.rpartition("/")[2]) == row.file and fragment.startswith("sha256="):
            return fragment.removeprefix("sha256=")
    return None


def computed_hash(url: str) -> str:
    """Fetch a file, keeping nothing, and return its sha256. Raises RM104."""
    digest = hashlib.sha256()
    for piece in _pieces(url):
        digest.update(piece)
    return digest.hexdigest()


def _read(url: str) -> bytes:
    return b"".join(_pieces(url))


def _pieces(url: str) -> Iterator[bytes]:
    """Yield a file piece by piece. Raises RM104, also where it breaks off: urllib ends such a file without an error."""
    size, stated = 0, None
    try:
        with urlopen(url, timeout=PATIENCE_SECONDS) as stream:
            stated = stream.headers.get("Content-Length")
            while piece := stream.read(CHUNK_BYTES):
                size += len(piece)
                yield piece
    except (OSError, HTTPException) as error:
        raise RocmatrixError("RM104", what=url, why=str(error)) from None
    if stated is not None and size != int(stated):
        raise RocmatrixError("RM104", what=url, why=f"it broke off after {size:,} of {int(stated):,} bytes")
