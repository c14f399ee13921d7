"""Generated files in the checkout: written, compared with what is committed, removed where nothing renders them."""

from __future__ import annotations

from pathlib import Path

from rocmatrix.cli import generated_docs
from rocmatrix.diagnosis.pages import searchable
from rocmatrix.images.render import HEADER, files, read
from rocmatrix.matrix.matrix import Matrix
from rocmatrix.runtime.errors import RocmatrixError


def write(matrix: Matrix, root: Path) -> list[str]:
    """Write what differs and remove what nothing renders any more. Returns the paths touched."""
    rendered = files(matrix) | generated_docs.files(matrix, root)
    touched = [path for path, text in rendered.items() if read(root / path) != text]
    for path in touched:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(rendered[path], encoding="utf-8")
    stale = stale_files(rendered, root)
    for path in stale:
        (root / path).unlink()
    return touched + stale


def check(matrix: Matrix, root: Path) -> int:
    """Compare the checkout with what the matrix renders. Returns the number compared, raises RM101."""
    rendered = files(matrix) | generated_docs.files(matrix, root)
    drifted = [path for path, text in rendered.items() if read(root / path) != text] + stale_files(rendered, root)
    if drifted or not rendered:
        raise RocmatrixError("RM101", what="\n".join(drifted) or "nothing was rendered", where=str(root))
    return len(rendered)


def stale_files(rendered: dict[str, str], root: Path) -> list[str]:
    """Return files that were rendered once and that nothing renders any more.

    Only what bears a rendered file's name or mark counts: what people keep next to them stays.
    """
    names = {Path(path).name for path in rendered if path.startswith("images/")}
    found = [path for path in (root / "images").glob("*/*") if path.name in names]
    marked = [(path, HEADER) for path in (root / "compose").glob("*.yaml")]
    marked += [(path, searchable.GENERATED) for path in (root / searchable.FOLDER).glob("*.*")]
    found += [path for path, mark in marked if mark in path.read_text(encoding="utf-8")]
    return sorted(name for path in found if (name := path.relative_to(root).as_posix()) not in rendered)
