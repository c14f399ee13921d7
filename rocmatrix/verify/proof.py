"""All checks on one image or folder, and the verdict."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rocmatrix.containers import engine, orphan_cleanup
from rocmatrix.images import labels as image_labels
from rocmatrix.images.wheelhouse import default_folder
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.runtime.errors import RocmatrixError, suggestion
from rocmatrix.verify import hygiene, image_scan, kernel_code, label_check, packages, settings, size
from rocmatrix.verify.devicecode import filetree
from rocmatrix.verify.devicecode.filetree import Entry
from rocmatrix.verify.files import byte_code, installed, source, system
from rocmatrix.verify.files.system import Base
from rocmatrix.verify.files.tree import Tree
from rocmatrix.verify.finding import Check, Finding

if TYPE_CHECKING:
    import docker

T = TypeVar("T")
BUFFER = 1024 * 1024  # bytes
MODULES = (label_check, settings, kernel_code, packages, hygiene, size, installed, source, system, byte_code)
EVERY_CHECK = frozenset(module.NAME for module in MODULES)
MAY_BE_LEFT_OUT = (size.NAME,)  # a first image has no size to be compared with
NEVER_RUN = "true"  # an image without a command of its own needs one to make a container of


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Proof of an image or folder for a cell, with the result of each check."""

    cell: str
    architecture: str | None
    subject: str
    checks: tuple[Check, ...]
    of_image: bool = False

    @property
    def proven(self) -> bool:
        """Whether every check that applies passed, and at least one does.

        An image has to have been given to every check that there is: one that never looked has not passed.
        """
        done = [check.status for check in self.checks if check.status != "not checked"]
        looked = {check.name for check in self.checks if check.status != "not checked" or check.name in MAY_BE_LEFT_OUT}
        whole = not self.of_image or looked >= EVERY_CHECK
        return whole and bool(done) and all(status == "passed" for status in done)

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
    root: Path,
    wheels: Path | None = None,
    recorded: size.Recorded | None = None,
    accept: str = "",
) -> Proof:
    """Prove an image that the engine holds. Of it its Python alone runs, to compile its sources once more.

    `recorded` is the size that stands in for a baseline. Raises RM201, RM203, RM221.

    Args:
        reference: reference or id of the image.
        today: date of the size's record, such as 2026-11-21.
        root: checkout whose trainer the image should hold.
        wheels: folder of the locked wheels; None for the checkout's own.
        accept: a person's reason to take the size as it is; empty to compare it.
    """
    with closing(engine.connect(work=True)) as client:
        if (held := engine.image(client, reference)) is None:
            raise RocmatrixError("RM203", what=f"the engine holds no image {reference}")
        tree = Tree()
        found = exported(client, held.id, matrix, tree=tree)
        attributes, base = client.images.get(held.id).attrs, base_of(client, held.labels, cell)
        known = matrix.baseline(cell.name)
        checks = (
            *_claims(matrix, cell, attributes, found, base),
            size.check(found.size, known, cell=cell.name, today=today, recorded=recorded, accept=accept),
            *_bytes(cell, tree, attributes["RootFS"]["Layers"], base, root=root, wheels=wheels),
        )
        clean = all(check.status == "passed" for check in checks if check.name != size.NAME)
        compiled = byte_code.check(client, held.id, tree, root=root, clean=clean)
    checks = (*checks, compiled)
    return Proof(
        cell=cell.name, architecture=cell.architecture, subject=f"image {reference}", checks=checks, of_image=True
    )


def _claims(
    matrix: Matrix, cell: Cell, attributes: Mapping[str, Any], found: image_scan.Contents, base: Base | None
) -> tuple[Check, ...]:
    """Return the checks on an image's labels and settings, and on its files by name."""
    config = attributes["Config"]
    return (
        label_check.check(
            config.get("Labels") or {},
            user=str(config.get("User", "")),
            cell=cell,
            inherited=cast(Mapping[str, Any], base.config.get("Labels") or {}) if base else None,
        ),
        settings.check(attributes, cell, base.config if base else None),
        _device_code(matrix, cell, found, [library.library for library in matrix.kernel_libraries_of(cell)]),
        packages.check(found.packages, cell),
        hygiene.check(found.violations, files=found.files),
    )


def _bytes(
    cell: Cell, tree: Tree, layers: Sequence[str], base: Base | None, *, root: Path, wheels: Path | None
) -> tuple[Check, ...]:
    """Return the checks on every file by its bytes."""
    return (
        installed.check(tree, cell, wheels or default_folder(root, cell)),
        source.check(tree, root),
        system.check(tree, layers, base),
    )


def base_of(client: docker.DockerClient, labels: Mapping[str, str], cell: Cell) -> Base | None:
    """Return the base of an image, read whole: the one its labels name, else the cell's own; None where it is not here.

    Nothing is pulled for it. An id in the labels counts for another base alone, whose records are marked: the cell's
    own, and the same from a mirror, are looked up by name and digest, which the engine compares with what it holds.

    Args:
        labels: labels of the image by name.
    """
    named = labels.get(image_labels.BASE)
    other = named if named and not image_labels.is_own(named, cell.base.digest) else None
    names = [labels.get(image_labels.BASE_ID), other] if other else [named, cell.base.reference]
    held = next((found for name in names if name and (found := engine.image(client, name)) is not None), None)
    if held is None:
        return None
    attributes = client.images.get(held.id).attrs
    tree = Tree()
    _export(client, held.id, tree.look_all)
    layers = tuple(attributes["RootFS"]["Layers"])
    name = other or cell.base.reference
    return Base(name=name, layers=layers, rows=tree.rows, config=attributes["Config"] or {}, own=other is None)


def exported(
    client: docker.DockerClient, reference: str, matrix: Matrix, *, tree: Tree | None = None
) -> image_scan.Contents:
    """Read the files of an image that the engine holds, through a container that is made for this and never started.

    `tree` takes up every file by its bytes. Raises RM221 when the engine's stream breaks off.

    Args:
        reference: reference or id of the image.
    """
    return _export(client, reference, lambda entries: image_scan.read(entries, matrix.kernels, tree=tree))


def _export(client: docker.DockerClient, reference: str, read: Callable[[Iterator[Entry]], T]) -> T:
    container = client.containers.create(
        reference, [NEVER_RUN], entrypoint=[], network_disabled=True, labels=orphan_cleanup.label()
    )
    try:
        stream = filetree.Chunks(cast(Iterable[bytes], container.export()))
        with io.BufferedReader(stream, buffer_size=BUFFER) as buffered:
            return read(filetree.in_tar(buffered))
    except tarfile.TarError as error:
        raise RocmatrixError("RM221", what=f"the engine's export breaks off: {error}", where=reference) from error
    finally:
        container.remove(force=True)


def of_tree(matrix: Matrix, cell: Cell, folder: Path, *, only: Sequence[str] = ()) -> Proof:
    """Prove the device code in a folder, as of an unpacked package. Raises RM221 for no folder, RM404 for a name.

    `only` names the libraries that must be there, in place of those of the cell. All else that an image is
    checked for is said not to be.

    Args:
        folder: root of the unpacked tree.
        only: names of the libraries that must be there; empty for those of the cell.
    """
    if not folder.is_dir():
        raise RocmatrixError("RM221", what="there is no such folder", where=str(folder))
    names = [library.library for library in matrix.kernels]
    for name in only:
        if name not in names:
            raise RocmatrixError("RM404", what=f"no kernel library is called {name!r}", next=suggestion(name, names))
    found = image_scan.read(filetree.on_disk(folder), matrix.kernels)
    required = list(only) or [library.library for library in matrix.kernel_libraries_of(cell)]
    left_out = [
        Check(name=check.NAME, summary="a folder is no image", skipped=True)
        for check in (label_check, settings, packages, installed, source, system, hygiene, size, byte_code)
    ]
    checks = (_device_code(matrix, cell, found, required), *left_out)
    return Proof(cell=cell.name, architecture=cell.architecture, subject=f"folder {folder}", checks=checks)


def _device_code(matrix: Matrix, cell: Cell, found: image_scan.Contents, required: list[str]) -> Check:
    return kernel_code.check(
        found,
        architecture=cell.architecture,
        known=matrix.kernels,
        required=required,
        alone=cell.one_architecture,
    )
