"""A cell's image, built offline by BuildKit from its rendered files, the wheelhouse and the trainer.

Docker's SDK has no BuildKit, so this goes through `docker buildx`. The image carries the hash of
everything it was made of; where the engine holds an image with that hash, nothing is built.
"""

from __future__ import annotations

import hashlib
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.containers import engine, engine_lock
from rocmatrix.containers.label_integrity import EPOCH
from rocmatrix.host import simulated
from rocmatrix.images import buildkit, disk_space
from rocmatrix.images import labels as image_labels
from rocmatrix.images.base import chosen, refuse_held, refuse_known
from rocmatrix.images.labels import BASE as BASE_LABEL
from rocmatrix.images.labels import FORCED as FORCED_LABEL
from rocmatrix.images.labels import INPUTS as INPUTS_LABEL
from rocmatrix.images.labels import OtherBase
from rocmatrix.images.wheelhouse import default_folder, fetch, sha256
from rocmatrix.matrix.cells.cell import WITH
from rocmatrix.matrix.matrix import Cell
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import PACKAGE
from rocmatrix.runtime.trouble import Stage, Trouble

if TYPE_CHECKING:
    import docker

__all__ = ["BASE_LABEL", "FORCED_LABEL", "INPUTS_LABEL"]
CELL_FILES = ("Dockerfile", "requirements.lock", "cell.json")
PRUNER = PACKAGE  # always this program's own, also for a checkout elsewhere
PRUNER_FILES = (
    "__init__.py",
    "verify/__init__.py",
    "verify/pruning/__init__.py",
    "verify/pruning/prune.py",
    *(f"verify/devicecode/{name}.py" for name in ("__init__", "elf", "names", "reading", "target")),
    *("host/__init__.py", "host/processors.py", "host/processors.json"),  # the numbers of processors
    *("runtime/__init__.py", "runtime/paths.py"),
)


@dataclass(frozen=True, kw_only=True)
class Built:
    """Outcome of a build. `labels` are those it writes; `image` is what was built or reused, None if nothing.

    `moved_to` is the image that the tag names where another program moved it after the build, else None.
    """

    tag: str
    inputs: str
    argv: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    image: engine.Image | None = None
    rebuilt: bool = False
    seconds: float = 0.0
    moved_to: str | None = None

    @property
    def summary(self) -> str:
        """The outcome in one line."""
        if self.image is None:
            return "dry run: nothing was built"
        if not self.rebuilt:
            return f"{self.tag} is up to date (inputs {self.inputs[:12]})"
        named = f"{self.image.id}, while {self.tag} was moved to another image," if self.moved_to else self.tag
        return f"built {named} in {self.seconds:.0f} s (inputs {self.inputs[:12]})"


class BuildFailedError(RocmatrixError):
    """A build that was planned and gave no image. `trouble` is what of the host ended it, None for no such thing."""

    def __init__(self, error: RocmatrixError, *, planned: Built, trouble: Trouble | None) -> None:
        super().__init__(error.code, what=error.what, where=error.where, why=error.why, next=error.next)
        self.planned, self.trouble = planned, trouble


def build(
    cell: Cell,
    *,
    root: Path,
    base: str | None = None,
    wheelhouse: Path | None = None,
    dry_run: bool = False,
    allow_unlocked: bool = False,
    forced: Sequence[str] = (),
) -> Built:
    """Build the image of `cell` unless the engine holds one made of the same inputs.

    A dry run prints the command on standard output and queries neither engine nor index; of an unlocked cell it queries
    the engine for the image that `allow_unlocked` built before, which is used without it. Raises RM101, RM102, RM113,
    RM201, RM202, RM204, and what fetching raises.

    Args:
        root: folder of the checkout.
        base: reference of a base in place of the cell's own. The image's labels hold it, and the next build takes it
            again unless another is named.
        wheelhouse: folder of wheels in place of the checkout's.
        dry_run: print the command and run nothing.
        allow_unlocked: build a cell whose wheels have no recorded hashes, from what its index serves.
        forced: ids of the rules that were overridden; a label of the image lists them.
    """
    refused = _unlocked(cell, cell.unlocked_because) if cell.unlocked_because and not allow_unlocked else None
    if refused and engine.obstacle():
        raise refused
    refuse_known(cell, base)
    parts = _Parts(cell=cell, root=root, wheels=wheelhouse or default_folder(root, cell), forced=forced)
    named = OtherBase(name=base) if base else None
    if dry_run and not refused:
        planned = parts.planned(named)
        print(shlex.join(planned.argv))
        return planned
    with closing(engine.connect(work=True)) as client:
        held = engine.image(client, tag(cell))
        if refused and (held is None or (dry_run and base and engine.image(client, base) is None)):
            raise refused  # a dry run pulls no base
        try:
            other = chosen(client, base, held)
            if other and (held is None or base):
                refuse_held(cell, client, other)
            planned = parts.planned(other)
            if refused and not is_of(held, planned.inputs):  # one that --allow-unlocked built before is run as it is
                raise refused
        except RocmatrixError as error:
            raise _unplanned(error, parts.planned(named)) from error
        return _build(client, planned, cell, held=held, wheels=parts.wheels, log=log_file(cell, root))


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """What a build is made of but for the base, which is known when the engine has been queried."""

    cell: Cell
    root: Path
    wheels: Path
    forced: Sequence[str]

    def planned(self, other: OtherBase | None) -> Built:
        """Return the build with another base than the cell's own, or None for that one. Raises RM101."""
        inputs = input_hash(self.cell, self.root, base=other.counted if other else None, forced=self.forced)
        argv = buildx_argv(
            self.cell,
            root=self.root,
            wheelhouse=self.wheels,
            inputs=inputs,
            base=other.name if other else None,
            base_id=other.id if other else None,
            forced=self.forced,
            described=image_labels.describing(self.cell.base, self.root, other),
        )
        labels = image_labels.of_build(inputs, other=other, forced=self.forced)
        return Built(tag=tag(self.cell), inputs=inputs, argv=tuple(argv), labels=labels)


def _unplanned(error: RocmatrixError, planned: Built) -> RocmatrixError:
    """Return the failure to get a base as one of a build; what else went wrong stays what it is."""
    if error.code != "RM204":
        return error
    return BuildFailedError(error, planned=planned, trouble=Trouble(stage="registry", detail=error.render()))


def _unlocked(cell: Cell, why: str) -> RocmatrixError:
    where = f"matrix/locks.yaml, {cell.lock_name}, Python {cell.python}"
    return RocmatrixError("RM102", what=f"{cell.name} is unlocked", where=where, why=why, next=how_to_lock(cell))


def how_to_lock(cell: Cell) -> str:
    """Return the one command that records the hashes of a cell, where it has to run, and how its files come here."""
    stem = cell.name.partition(WITH)[0]
    return (
        f"In a checkout of this commit on a machine that reaches {cell.release.index}, this one or another, run:\n"
        f"  ./invokew lock --cell {stem}\n"
        "From another machine bring matrix/wheels.yaml and matrix/locks.yaml, which it writes: run there\n"
        "  git diff matrix/ > lock.patch\n"
        "and here `git apply lock.patch`. Or choose a locked cell, or give --allow-unlocked to `build` or `run`, which "
        "installs what the index serves, unchecked."
    )


def tag(cell: Cell) -> str:
    """Return the name of the cell's image; what is simulated never takes the one that people use."""
    return f"rocmatrix:{simulated.prefix()}{cell.image_name}"


def log_file(cell: Cell, root: Path) -> Path:
    """Return where BuildKit's whole output of the last build is kept."""
    return root / ".rocmatrix" / "logs" / f"build-{cell.image_name}.log"


def recipe(cell: Cell, root: Path) -> Path:
    """Return the folder of the image's files: committed, or made for companions or a derived cell."""
    committed, made = root / "images" / cell.name, made_recipe(cell, root)
    return made if cell.companions or not cell.written else committed


def made_recipe(cell: Cell, root: Path) -> Path:
    """Return where the files of an image are written that the matrix does not render."""
    return root / ".rocmatrix" / "recipes" / cell.image_name


def input_hash(cell: Cell, root: Path, *, base: str | None = None, forced: Sequence[str] = ()) -> str:
    """Return the sha256 over names and bytes of all that goes into the image. Raises RM101.

    Times and byte code do not count. `base` is what another base counts by: its id, for a tag may move; the cell's
    own counts by its reference.

    Args:
        root: folder of the checkout.
        base: id of another base; None for the cell's own.
        forced: ids of the rules that were overridden.
    """
    digest = hashlib.sha256(f"base\0{base or cell.base.reference}\n".encode())
    for rule in forced:
        digest.update(f"forced\0{rule}\n".encode())
    for name, path in sorted([*_cell_files(cell, root), *trainer_files(root), *pruner_files(cell)]):
        digest.update(f"{name}\0{sha256(path)}\n".encode())
    return digest.hexdigest()


def _cell_files(cell: Cell, root: Path) -> Iterator[tuple[str, Path]]:
    for name in CELL_FILES:
        path = recipe(cell, root) / name
        if not path.is_file():
            raise RocmatrixError("RM101", what=f"{name} of {cell.name} is missing", where=str(path.parent))
        yield f"cell/{name}", path


def trainer_files(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield (name, path) of the trainer's files, without byte code, as trainer/.dockerignore has it."""
    folder = root / "trainer"
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and "__pycache__" not in name.parts:
            yield f"trainer/{name.as_posix()}", path


def pruner_files(cell: Cell) -> Iterator[tuple[str, Path]]:
    """Yield (name, path) of what a pruned cell's build runs, as rocmatrix/.dockerignore lets it through."""
    for name in PRUNER_FILES if cell.prune else ():
        yield f"pruner/{name}", PRUNER / name


def buildx_argv(
    cell: Cell,
    *,
    root: Path,
    wheelhouse: Path,
    inputs: str,
    base: str | None = None,
    base_id: str | None = None,
    forced: Sequence[str] = (),
    described: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the command that builds the image, every stage of another origin replaced by its context.

    Args:
        root: folder of the checkout.
        wheelhouse: folder of the locked wheels.
        inputs: input hash, for the labels.
        base: reference of another base; None for the cell's own.
        base_id: id of that base.
        forced: ids of the rules that were overridden.
        described: OCI's labels on where the build comes from, no input of the image.
    """
    contexts = {"wheelhouse": str(wheelhouse), "trainer": str(root / "trainer")}
    if cell.prune:
        contexts["pruner"] = str(PRUNER)
    if base is not None:
        contexts["base"] = f"docker-image://{base}"
    argv = [
        "docker",
        "buildx",
        "build",
        "--output",
        buildkit.OUTPUT,
        "--provenance=false",
        "--progress=plain",
        "--tag",
        tag(cell),
    ]
    argv += ["--build-arg", f"SOURCE_DATE_EPOCH={EPOCH}"]
    written = image_labels.written(inputs=inputs, base=base, base_id=base_id, forced=forced)
    for name, value in {**written, **(described or {})}.items():
        argv += ["--label", f"{name}={value}"]
    for name, place in contexts.items():
        argv += ["--build-context", f"{name}={place}"]
    return [*argv, str(recipe(cell, root))]


def _build(
    client: docker.DockerClient, planned: Built, cell: Cell, *, held: engine.Image | None, wheels: Path, log: Path
) -> Built:
    started = time.monotonic()
    if held is not None and is_of(held, planned.inputs):
        return replace(planned, image=held)
    engine.require_buildx()
    watched = disk_space.of_engine(client)
    busy = f"another checkout on this engine builds {planned.tag}, which then is its image until this build ends"
    with engine_lock.exclusive(client, planned.tag, waiting=busy):
        try:
            _prepare(client, planned, cell, wheels)
            buildkit.run(planned.argv, log=log, watched=watched)
            image = engine.sealed(client, planned.tag)
        except RocmatrixError as error:
            raise failed(error, planned, client, watched) from error
        image = _arrived(image, planned, log)
        named = engine.image(client, planned.tag)
    moved_to = None if named is not None and named.id == image.id else (named.id if named else "no image")
    return replace(planned, image=image, rebuilt=True, seconds=time.monotonic() - started, moved_to=moved_to)


def _prepare(client: docker.DockerClient, planned: Built, cell: Cell, wheels: Path) -> None:
    """Get the base and the wheels, so that BuildKit queries no registry. Raises where one cannot be fetched."""
    if BASE_LABEL not in planned.labels:
        engine.obtain(client, cell.base.reference)
    if cell.unlocked_because:
        wheels.mkdir(parents=True, exist_ok=True)  # the build context has to exist; nothing is taken from it
    else:
        fetch(cell, wheels)


def failed(
    error: RocmatrixError, planned: Built, client: docker.DockerClient, watched: disk_space.Room
) -> RocmatrixError:
    """Return a build's failure with what of the host ended it; what was refused before it began stays what it is."""
    stages: dict[str, Stage] = {
        "RM202": "engine", "RM204": "registry", "RM104": "registry", "RM205": "disk", "RM206": "disk",
    }  # fmt: skip # RM202 not of BuildKit is the engine's, which would not seal the image
    stage = _stage(error, client, watched) if isinstance(error, buildkit.BuildKitError) else stages.get(error.code)
    if stage is None and not isinstance(error, buildkit.BuildKitError):
        return error
    trouble = Trouble(stage=stage, detail=error.render()) if stage else None
    return BuildFailedError(error, planned=planned, trouble=trouble)


def _stage(error: buildkit.BuildKitError, client: docker.DockerClient, watched: disk_space.Room) -> Stage | None:
    """Return what ended BuildKit: a signal to its client, no room at any time, or an engine that no longer answers."""
    if error.status < 0:
        return "signal"
    if watched.ran_out:
        return "disk"
    try:
        client.ping()
    except engine.failures():
        return "engine"
    return None


def is_of(image: engine.Image | None, inputs: str) -> bool:
    """Return whether an image was built of these inputs and is as it was built; one made FROM it is not."""
    return image is not None and image.sealed and image.labels.get(INPUTS_LABEL) == inputs


def _arrived(image: engine.Image | None, planned: Built, log: Path) -> engine.Image:
    """Look after BuildKit: the tag is there and was made of these inputs."""
    if image is None or not is_of(image, planned.inputs):
        what = f"the builder reported success, but the engine holds no {planned.tag} with these inputs"
        raise RocmatrixError("RM202", what=what, where=str(log))
    return image
