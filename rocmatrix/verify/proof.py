"""All checks on one image or folder, and the verdict."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rocmatrix.containers import engine
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.runtime.errors import RocmatrixError, suggestion
from rocmatrix.verify import claim, contents, hygiene, kernel_code, packages, size
from rocmatrix.verify.devicecode import filetree
from rocmatrix.verify.finding import Check, Finding

if TYPE_CHECKING:
    import docker

BUFFER = 1024 * 1024  # bytes
NEVER_RUN = "true"  # an image without a command of its own needs one to make a container of


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What was looked into, for which cell, and what each check said."""

    cell: str
    architecture: str | None
    subject: str
    checks: tuple[Check, ...]

    @property
    def proven(self) -> bool:
        """Whether every check that applies passed, and at least one does."""
        done = [check.status for check in self.checks if check.status != "not checked"]
        return bool(done) and all(status == "passed" for status in done)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is wrong."""
        return tuple(finding for check in self.checks for finding in check.findings)

    def described(self) -> dict[str, Any]:
        """Return the proof as plain data."""
        return {
            "schema": 1,
            "cell": self.cell,
            "architecture": self.architecture,
            "subject": self.subject,
            "proven": self.proven,
            "checks": [check.described() for check in self.checks],
        }


def of_image(
    matrix: Matrix,
    cell: Cell,
    reference: str,
    *,
    today: str,
    recorded: size.Recorded | None = None,
    accept: str = "",
) -> Proof:
    """Prove an image that the engine holds, without running it. Raises RM201, RM203, RM221.

    `recorded` is the size that stands in for a baseline; `accept` a person's reason to take the size as it is.
    """
    with closing(engine.connect()) as client:
        if engine.image(client, reference) is None:
            raise RocmatrixError("RM203", what=f"the engine holds no image {reference}")
        config = client.images.get(reference).attrs["Config"]
        found = exported(client, reference, matrix)
    baseline = matrix.baseline(cell.name)
    checks = (
        claim.check(config.get("Labels") or {}, user=str(config.get("User", "")), cell=cell),
        _device_code(matrix, cell, found, [library.library for library in matrix.kernel_libraries_of(cell)]),
        packages.check(found.packages, cell),
        hygiene.check(found.strays, files=found.files),
        size.check(found.size, baseline, cell=cell.name, today=today, recorded=recorded, accept=accept),
    )
    return Proof(cell=cell.name, architecture=cell.architecture, subject=f"image {reference}", checks=checks)


def exported(client: docker.DockerClient, reference: str, matrix: Matrix) -> contents.Contents:
    """Read the files of an image that the engine holds, through a container that is made for this and never started.

    Raises RM221 when the engine's stream breaks off.
    """
    container = client.containers.create(reference, [NEVER_RUN], entrypoint=[], network_disabled=True)
    try:
        stream = filetree.Chunks(cast(Iterable[bytes], container.export()))
        with io.BufferedReader(stream, buffer_size=BUFFER) as buffered:
            return contents.read(filetree.in_tar(buffered), matrix.kernels)
    except tarfile.TarError as error:
        raise RocmatrixError("RM221", what=f"the engine's export breaks off: {error}", where=reference) from error
    finally:
        container.remove(force=True)


def of_tree(matrix: Matrix, cell: Cell, folder: Path, *, only: Sequence[str] = ()) -> Proof:
    """Prove the device code in a folder, as of an unpacked package. Raises RM221 for no folder, RM404 for a name.

    `only` names the libraries that must be there, in place of those of the cell. All else that an image is
    checked for is said not to be.
    """
    if not folder.is_dir():
        raise RocmatrixError("RM221", what="there is no such folder", where=str(folder))
    names = [library.library for library in matrix.kernels]
    for name in only:
        if name not in names:
            raise RocmatrixError("RM404", what=f"no kernel library is called {name!r}", next=suggestion(name, names))
    found = contents.read(filetree.on_disk(folder), matrix.kernels)
    required = list(only) or [library.library for library in matrix.kernel_libraries_of(cell)]
    left_out = [
        Check(name=check.NAME, summary="a folder is no image", skipped=True)
        for check in (claim, packages, hygiene, size)
    ]
    checks = (_device_code(matrix, cell, found, required), *left_out)
    return Proof(cell=cell.name, architecture=cell.architecture, subject=f"folder {folder}", checks=checks)


def _device_code(matrix: Matrix, cell: Cell, found: contents.Contents, required: list[str]) -> Check:
    return kernel_code.check(
        found,
        architecture=cell.architecture,
        known=matrix.kernels,
        required=required,
        alone=cell.one_architecture,
    )
