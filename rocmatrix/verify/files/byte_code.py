"""Byte code against its source: compiled again by the very Python that would run it, in a closed container.

Which instructions a source becomes depends on the release of Python, down to its last digit, so this host's own is of
no use. The image's interpreter and library are compared with the base and the package lists before this (`system`), the
sources with their wheels (`files`): only an image without any other finding gets here. The interpreter reads no byte
code at all while it compares, nothing of the environment, and has no network, no rights and nothing to write to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.containers import orphan_cleanup
from rocmatrix.runtime.paths import RECOMPILE
from rocmatrix.verify.files.tree import VENV, Tree
from rocmatrix.verify.finding import Check, Finding

if TYPE_CHECKING:
    import docker

NAME = "byte code"
CODE = "RM664"
ROOTS = (f"{VENV}/lib", "/usr/lib", "/usr/share", "/usr/local")
SECONDS = 600  # an image of 7,000 files takes 20 s on two cores
MEMORY = 4 * 1024**3  # bytes
UID_GID = "65534:65534"


def check(client: docker.DockerClient, image: str, tree: Tree, *, root: Path, clean: bool) -> Check:
    """Compare the byte code of the image with the id `image`. `clean` is true where no other check found anything.

    What was compared once is noted below `root`, by the digests of all sources, byte code and interpreter.

    Args:
        image: id of the image.
        root: folder below which the outcome is kept.
        clean: no other check found anything.
    """
    count = sum(1 for _ in _byte_code(tree))
    if not clean:
        what = "was not compared: it is, once nothing else is wrong with the image"
        return Check(name=NAME, summary=f"{count} files", skipped=True, notes=(f"byte code {what}",))
    noted = root / ".rocmatrix" / "byte-code" / _digest(tree)
    if noted.is_file():
        return Check(name=NAME, summary=f"{count} files, compared before with the same sources and interpreter")
    findings = tuple(_findings(_run(client, image), count))
    if not findings:
        with suppress(OSError):
            noted.parent.mkdir(parents=True, exist_ok=True)
            noted.touch()
    return Check(name=NAME, summary=f"{count} files, compiled again by the image's Python", findings=findings)


def _byte_code(tree: Tree) -> Iterator[str]:
    for path, row in tree.rows.items():
        if path.endswith(".pyc") and "/__pycache__/" in path and path.startswith(ROOTS) and row.kind == "file":
            yield path


def _digest(tree: Tree) -> str:
    """Return one digest of all that decides: the comparing program, and every file of the system and environment."""
    digest = hashlib.sha256(RECOMPILE.read_bytes())
    for path, row in sorted(tree.rows.items()):
        if row.kind == "file" and path.startswith(("/usr/", f"{VENV}/")):
            digest.update(f"{path}\0".encode(errors="surrogateescape") + row.sha256)
    return digest.hexdigest()


def _run(client: docker.DockerClient, image: str) -> dict[str, Any]:
    """Return what the program printed; what went wrong, under `problem`, where it printed nothing that can be read."""
    import requests

    program = ["-I", "-S", "-B", "-X", "pycache_prefix=/nonexistent", "-c", RECOMPILE.read_text(encoding="utf-8")]
    container = client.containers.create(
        image, [*program, *ROOTS], entrypoint=["/usr/bin/python3"], user=UID_GID, working_dir="/",
        network_disabled=True,
        read_only=True, cap_drop=["ALL"], security_opt=["no-new-privileges"], mem_limit=MEMORY, pids_limit=256,
        labels=orphan_cleanup.label(),
    )  # fmt: skip
    try:
        container.start()
        status = container.wait(timeout=SECONDS)["StatusCode"]
        lines = container.logs(stdout=True, stderr=False).decode("utf-8", "replace").splitlines()
        found = json.loads(lines[-1]) if status == 0 and lines else {}
        return found if isinstance(found, dict) and found else {"problem": f"the comparison ended with {status}"}
    except (ValueError, requests.RequestException) as error:
        return {"problem": f"the comparison gave no answer: {error}"}
    finally:
        container.remove(force=True)


def _findings(found: dict[str, Any], count: int) -> Iterator[Finding]:
    if problem := found.get("problem"):
        yield Finding(code=CODE, what=str(problem))
        return
    if different := found.get("different"):
        yield Finding(code=CODE, what="not its source's", places=tuple(f"{path} ({why})" for path, why in different))
    if found.get("compared") != count:
        yield Finding(code=CODE, what=f"{found.get('compared')} files were compared of {count}")
