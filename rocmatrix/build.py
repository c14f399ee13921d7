"""A cell's image, built offline by BuildKit from its rendered files, the wheelhouse and the trainer.

Docker's SDK has no BuildKit, so this goes through `docker buildx`. The image carries the hash of
everything it was made of; where the engine holds an image with that hash, nothing is built.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rocmatrix import engine
from rocmatrix.console import say
from rocmatrix.errors import RocmatrixError
from rocmatrix.matrix import Cell
from rocmatrix.wheelhouse import default_folder, fetch, sha256

INPUTS_LABEL = "org.rocmatrix.inputs"
FORCED_LABEL = "org.rocmatrix.forced"
CELL_FILES = ("Dockerfile", "requirements.lock", "cell.json")
LINES_SHOWN = 20
STEP_WIDTH = 100
_STEP = re.compile(r"^#\d+ (\[.+)")  # BuildKit's plain progress: "#7 [runtime 2/4] RUN …"
_DISK_FULL = "no space left on device"


@dataclass(frozen=True, kw_only=True)
class Built:
    """What came of a build. `image` is what the engine holds now, None after a dry run."""

    tag: str
    inputs: str
    argv: tuple[str, ...]
    image: engine.Image | None = None
    rebuilt: bool = False
    seconds: float = 0.0

    @property
    def words(self) -> str:
        """The outcome in one line."""
        if self.image is None:
            return "dry run: nothing was built"
        if not self.rebuilt:
            return f"{self.tag} is up to date (inputs {self.inputs[:12]})"
        return f"built {self.tag} in {self.seconds:.0f} s (inputs {self.inputs[:12]})"


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

    `base` replaces the base image, `wheelhouse` the folder of wheels. A dry run prints the command on
    standard output and asks neither engine nor index. `allow_unlocked` builds a cell whose wheels have no
    recorded hashes from whatever its index serves. `forced` are the rules that were overridden: the image says so
    in a label. Raises RM101, RM102, RM201, RM202, RM204, and what
    fetching raises.
    """
    if cell.unlocked_because and not allow_unlocked:
        raise _unlocked(cell, cell.unlocked_because)
    wheels = wheelhouse or default_folder(root, cell)
    inputs = input_hash(cell, root, base=base, forced=forced)
    argv = buildx_argv(cell, root=root, wheelhouse=wheels, inputs=inputs, base=base, forced=forced)
    planned = Built(tag=tag(cell), inputs=inputs, argv=tuple(argv))
    if dry_run:
        print(shlex.join(argv))
        return planned
    return _build(planned, cell, wheels=wheels, base=base, log=log_file(cell, root))


def _unlocked(cell: Cell, why: str) -> RocmatrixError:
    where = f"matrix/locks.yaml, {cell.release.name}, Python {cell.python}"
    advice = (
        "Run `./invokew lock` where its index can be reached, choose a locked cell, "
        "or give --allow-unlocked to install what the index serves, unchecked."
    )
    return RocmatrixError("RM102", what=f"{cell.name} is unlocked", where=where, why=why, next=advice)


def tag(cell: Cell) -> str:
    """Return the name of the cell's image."""
    return f"rocmatrix:{cell.image_name}"


def log_file(cell: Cell, root: Path) -> Path:
    """Return where BuildKit's whole output of the last build is kept."""
    return root / ".rocmatrix" / "logs" / f"build-{cell.image_name}.log"


def recipe(cell: Cell, root: Path) -> Path:
    """Return the folder of the image's files: committed, or made for companions or a forced request."""
    committed, made = root / "images" / cell.name, made_recipe(cell, root)
    return made if cell.companions or (made.is_dir() and not committed.is_dir()) else committed


def made_recipe(cell: Cell, root: Path) -> Path:
    """Return where the files of an image are written that the matrix does not render."""
    return root / ".rocmatrix" / "recipes" / cell.image_name


def input_hash(cell: Cell, root: Path, *, base: str | None = None, forced: Sequence[str] = ()) -> str:
    """Return the sha256 over names and bytes of all that goes into the image. Raises RM101.

    Times and byte code do not count. A base counts by its reference: given as a tag, it may move unseen.
    """
    digest = hashlib.sha256(f"base\0{base or cell.base.reference}\n".encode())
    for rule in forced:
        digest.update(f"forced\0{rule}\n".encode())
    for name, path in sorted([*_cell_files(cell, root), *trainer_files(root)]):
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


def buildx_argv(
    cell: Cell, *, root: Path, wheelhouse: Path, inputs: str, base: str | None = None, forced: Sequence[str] = ()
) -> list[str]:
    """Return the command that builds the image, every stage of another origin replaced by its context."""
    contexts = {"wheelhouse": str(wheelhouse), "trainer": str(root / "trainer")}
    if base is not None:
        contexts["base"] = f"docker-image://{base}"
    argv = ["docker", "buildx", "build", "--load", "--provenance=false", "--progress=plain"]
    argv += ["--tag", tag(cell), "--label", f"{INPUTS_LABEL}={inputs}"]
    argv += ["--label", f"{FORCED_LABEL}={','.join(forced)}"] if forced else []
    for name, place in contexts.items():
        argv += ["--build-context", f"{name}={place}"]
    return [*argv, str(recipe(cell, root))]


def _build(planned: Built, cell: Cell, *, wheels: Path, base: str | None, log: Path) -> Built:
    started = time.monotonic()
    with closing(engine.connect()) as client:
        held = engine.image(client, planned.tag)
        if held is not None and held.labels.get(INPUTS_LABEL) == planned.inputs:
            return replace(planned, image=held)
        engine.require_buildx()
        if base is not None:
            engine.obtain(client, base)
        if cell.unlocked_because:
            wheels.mkdir(parents=True, exist_ok=True)  # the build context has to exist; nothing is taken from it
        else:
            fetch(cell, wheels)
        run_buildx(planned.argv, log=log)
        image = _arrived(engine.image(client, planned.tag), planned, log)
    return replace(planned, image=image, rebuilt=True, seconds=time.monotonic() - started)


def _arrived(image: engine.Image | None, planned: Built, log: Path) -> engine.Image:
    """Look after BuildKit: the tag is there and was made of these inputs."""
    if image is None or image.labels.get(INPUTS_LABEL) != planned.inputs:
        what = f"the builder reported success, but the engine holds no {planned.tag} with these inputs"
        raise RocmatrixError("RM202", what=what, where=str(log))
    return image


def run_buildx(argv: Sequence[str], *, log: Path) -> None:
    """Run BuildKit, keep its whole output in `log` and show its steps. Raises RM202 with the last lines."""
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: deque[str] = deque(maxlen=LINES_SHOWN)
    shown: set[str] = set()
    with log.open("w", encoding="utf-8") as kept, _started(argv) as output:
        for line in output.stdout or ():
            kept.write(line)
            lines.append(line.rstrip())
            if (step := _STEP.match(line)) and step[1] not in shown:
                shown.add(step[1])
                say(f"  {step[1].rstrip()[:STEP_WIDTH]}")
    if output.returncode != 0:
        raise _failure(output.returncode, "\n".join(lines), log)


@contextmanager
def _started(argv: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a command to its end; leaving early (Ctrl-C, a full disk) cancels it, so that it tags nothing."""
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        try:
            yield process
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise


def _failure(status: int, tail: str, log: Path) -> RocmatrixError:
    # The status alone decides; these words only choose the advice.
    advice = "The engine's disk seems full: `docker system df`, `docker builder prune`." if _DISK_FULL in tail else ""
    return RocmatrixError(
        "RM202", what=f"docker buildx ended with status {status}", where=str(log), why=tail, next=advice
    )
