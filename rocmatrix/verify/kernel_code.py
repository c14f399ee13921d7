"""The device code of a tree against the architecture it is for: there, whole, and alone where it should be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rocmatrix.matrix.kernel_library import KernelLibrary
from rocmatrix.verify.devicecode import inventory
from rocmatrix.verify.devicecode.inspection import DeviceFile
from rocmatrix.verify.finding import Check, Finding
from rocmatrix.verify.image_scan import Contents, Library

NAME = "device code"


def check(
    contents: Contents,
    *,
    architecture: str | None,
    known: Sequence[KernelLibrary],
    required: Iterable[str],
    alone: bool,
) -> Check:
    """Compare with `architecture`; `required` names libraries that must hold its kernels.

    With `alone`, nothing for other architectures may be there, but in host libraries that hold several in one file.
    Without an architecture nothing of the kind may be there at all.

    Args:
        architecture: gfx name; None where no device code may be there.
        known: all kernel libraries of the matrix.
        required: names of libraries that must hold kernels of `architecture`.
        alone: refuse kernels of other architectures, except in host libraries that hold several in one file.
    """
    if architecture is None:
        return _none(contents)
    findings: list[Finding] = []
    for name in required:
        library = next(one for one in known if one.library == name)
        findings += _present(contents.library(name), library, architecture)
    findings += _damaged(contents)
    foreign = [file for file in _own_files(contents, known) if is_foreign(file, architecture)]
    if alone and foreign:
        size = sum(file.size for file in foreign)
        what = f"{len(foreign)} files of {size} bytes for {_targets(foreign)}, not for {architecture}"
        findings.append(Finding(code="RM213", what=what, places=tuple(file.path for file in foreign)))
    return Check(
        name=NAME,
        summary=_summary(contents, architecture),
        findings=tuple(findings),
        notes=tuple(_notes(contents, foreign, architecture, alone=alone)),
        data={"libraries": [row.as_json() for row in _rows(contents)], "files": _listed(contents)},
    )


def is_foreign(file: DeviceFile, architecture: str) -> bool:
    """Return whether a file is for other architectures alone. A family's folder belongs to every card of the family."""
    if file.named is not None and file.named.runs_on(architecture):
        return False
    return bool(file.targets) and not any(target.runs_on(architecture) for target in file.targets)


def _own_files(contents: Contents, known: Sequence[KernelLibrary]) -> list[DeviceFile]:
    """Return the files that are for one architecture or family each: not host libraries that hold many in one."""
    whole = [file for library in contents.libraries for file in library.files if file.format != "fat binary"]
    split = {one.library for one in known if one.prune}
    named = [file for one in contents.libraries if one.name in split for file in one.files if file not in whole]
    return [*whole, *named, *(file for file in contents.others if file.format != "fat binary")]


def _present(held: Library, library: KernelLibrary, architecture: str) -> list[Finding]:
    code = [file for file in held.files if file.holds_code]
    if not code:
        return [_empty(held)]
    own = [file for file in code if any(target.runs_on(architecture) for target in file.targets)]
    if not own:
        what = f"{held.name} holds code for {_targets(code)} and none for {architecture}"
        return [Finding(code="RM212", what=what, places=tuple(file.path for file in code))]
    return _indexed(held, library, architecture)


def _empty(held: Library) -> Finding:
    if held.name == "torch":
        return Finding(code="RM211", what="torch has no device code: a host-only build", places=held.paths)
    what = f"{held.name} holds no kernels" + (f" in its {len(held.paths)} files" if held.paths else " and no file")
    return Finding(code="RM214", what=what, places=held.paths)


def _indexed(held: Library, library: KernelLibrary, architecture: str) -> list[Finding]:
    """Where other architectures have an index, this one needs its own: without it its kernels are not looked at."""
    of_target, any_index = library.index_of(architecture), library.index_of("gfx[0-9a-f]+")
    if of_target is None or any_index is None or not any(map(any_index.search, held.paths)):
        return []
    filled = {file.path for file in held.files}
    if any(of_target.search(path) and path in filled for path in held.paths):
        return []
    what = f"{held.name} has no index for {architecture}, so its kernels would not be found"
    return [Finding(code="RM214", what=what, places=tuple(filter(any_index.search, held.paths)))]


def _damaged(contents: Contents) -> list[Finding]:
    files = [file for library in contents.libraries for file in library.files]
    return [
        Finding(code="RM215", what=file.problem, places=(file.path,))
        for file in (*files, *contents.others)
        if file.problem is not None
    ]


def _none(contents: Contents) -> Check:
    files = [file for library in contents.libraries for file in library.files if file.targets]
    held = [*files, *(file for file in contents.others if file.targets)]
    findings = []
    if held:
        places = tuple(file.path for file in held)
        findings.append(Finding(code="RM213", what="a CPU image holds device code", places=places))
    if not contents.host_torch:
        findings.append(Finding(code="RM221", what="there is no torch to look into"))
    return Check(name=NAME, summary=f"none, as on a CPU, in {contents.files} files", findings=tuple(findings))


def _rows(contents: Contents) -> list[inventory.Row]:
    rows = [row for library in contents.libraries for row in inventory.rows(library.name, library.files)]
    by_name: dict[str, list[DeviceFile]] = {}
    for file in contents.others:
        by_name.setdefault(file.path.rpartition("/")[2], []).append(file)
    return rows + [row for name, files in sorted(by_name.items()) for row in inventory.rows(name, files)]


def _listed(contents: Contents) -> list[dict[str, Any]]:
    """Return every file of device code with its targets, for programs."""
    held = [file for library in contents.libraries for file in library.files]
    return [
        {"path": file.path, "format": file.format, "size": file.size, "targets": sorted(map(str, file.targets))}
        for file in (*held, *contents.others)
    ]


def _summary(contents: Contents, architecture: str) -> str:
    rows = [row for row in _rows(contents) if row.target.runs_on(architecture)]
    held = ", ".join(dict.fromkeys(row.library for row in rows)) or "no library"
    return f"{architecture} in {held}"


def _notes(contents: Contents, foreign: list[DeviceFile], architecture: str, *, alone: bool) -> Iterable[str]:
    if foreign and not alone:
        size = sum(file.size for file in foreign)
        yield f"{len(foreign)} files of {size} bytes are for other architectures; the cell is not pruned"
    held = [file for library in contents.libraries for file in library.files]
    hosts = [file for file in (*held, *contents.others) if file.format == "fat binary"]
    mixed = [file for file in hosts if any(not target.runs_on(architecture) for target in file.targets)]
    if mixed:
        size = sum(code.size for f in mixed for code in f.objects if not code.target.runs_on(architecture))
        yield f"{len(mixed)} host libraries hold {size} bytes of code for others too, unfolded: left as they are"


def _targets(files: Iterable[DeviceFile]) -> str:
    return ", ".join(sorted({str(target) for file in files for target in file.targets}))


def described_rows(check: Check) -> list[dict[str, Any]]:
    """Return the rows of the inventory that a check carries."""
    return list(check.data.get("libraries", ()))
