"""What has to fit torch: the triton and torchaudio of its release, a Python and a card that its wheels are made for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from packaging.version import Version

from rocmatrix.doctor.environment.lint_input import FileFinding, Fix, Subject
from rocmatrix.doctor.environment.packages.installs import Install
from rocmatrix.matrix.matrix import Matrix
from rocmatrix.matrix.release import Release

_PARTNERS = ("pytorch-triton-rocm", "triton-rocm", "torchaudio")
_TRITONS = ("pytorch-triton-rocm", "triton-rocm")  # what PyTorch's index calls it, the second from ROCm 7.0 on
_RENAMED = Version("7.0")
_OWN_TRITON = Version("2.2")  # PyPI's pytorch-triton-rocm ends with that of torch 2.1
_OTHER_PYTHON = re.compile(r"\buv\b.*(?:--python|-p)\b|\buv python install\b|\bconda\b|\bmamba\b|\bpyenv\b")
_TARGETS = ("PYTORCH_ROCM_ARCH", "HIP_SUPPORTED_ARCHS")
_TARGET = re.compile(r"gfx\d{2,3}[0-9a-f]")
_PYTHON = re.compile(r"(?:^|/)python:(3\.\d{1,2})(?:[.-]|$)")


def found(subject: Subject, installs: Sequence[Install], matrix: Matrix) -> Iterator[FileFinding]:
    """Yield partners of another torch, and a torch that has no wheel for the Python of the image.

    Args:
        installs: what the commands of the subject install, in their order.
    """
    of_torch = [one for one in installs if one.name == "torch"]
    if len({one.exact for one in of_torch}) == 1 and not _of_amd_before(of_torch[0]):
        yield from _partners(of_torch[0], installs, matrix)
    yield from _card(subject, of_torch, matrix)
    yield from _triton(subject, of_torch, installs)
    for one in installs:
        yield from _other_name(one)
    if any(_OTHER_PYTHON.search(command.text) for command in subject.commands):
        return
    for one in of_torch:
        yield from _python(subject, one, matrix)


def _of_amd_before(torch: Install) -> bool:
    """Return whether it is a wheel of AMD's own from the time when those had another triton than PyTorch's."""
    own = torch.by_url and not torch.of_pytorch
    return own and torch.exact is not None and Version(torch.exact) < Version("2.4")


def _partners(torch: Install, installs: Sequence[Install], matrix: Matrix) -> Iterator[FileFinding]:
    built = [row for row in matrix.releases if row.torch == torch.exact and row.rocm]
    served = {row.rocm for row in built}
    for one in installs:
        fitting = {row.companions[one.name] for row in built if one.name in row.companions}
        own = one.by_url or (one.local and one.rocm not in served)  # a build of AMD's, or of another maker
        if one.name in _PARTNERS and one.exact and fitting and not _fits(one.exact, fitting, own=own):
            yield FileFinding(
                rule="partner-of-another-torch", where=one.where, severity="warning" if one.by_url else "error",
                what=f"{one.name} {one.exact} with torch {torch.exact}",
                truth=f"{one.name} {one.exact} is of another torch: each is built against one, and pip refuses the "
                "pair or a later import fails",
                instead=f"{one.name}=={', '.join(sorted(fitting))}, or no version: torch asks for its own",
            )  # fmt: skip


def _fits(partner: str, versions: Collection[str], *, own: bool) -> bool:
    """Return whether a partner is one of the versions that torch was built with; of AMD's own wheels it may be another
    one of the same series."""
    return _series(partner) in map(_series, versions) if own else partner in versions


def _series(version: str) -> tuple[int, ...]:
    return Version(version).release[:2]


def _other_name(one: Install) -> Iterator[FileFinding]:
    """Yield triton under the name that it has in the index of another ROCm."""
    if one.name in _TRITONS and one.rocm and not one.extra and not one.by_url:
        right = _TRITONS[Version(one.rocm.rstrip(".")) >= _RENAMED]
        if one.name != right:
            yield FileFinding(
                rule="triton-of-another-name", where=one.where, what=f"{one.name} of ROCm {one.rocm}'s index",
                severity="warning", truth=f"that index has no package of the name: triton is called {right} there",
                instead=f"{right}, or nothing: torch asks for its own", fix=Fix(
                    where=one.where, before=one.name, after=right),
            )  # fmt: skip


def _triton(subject: Subject, of_torch: Sequence[Install], installs: Sequence[Install]) -> Iterator[FileFinding]:
    """Yield torch by the address of its wheel, where nothing gives the triton that it asks for in one exact version."""
    named = any(row.name.startswith(("PIP_", "UV_")) for row in subject.variables)
    if named or subject.image is not None or any(one.name in (*_TRITONS, "triton") for one in installs):
        return
    for one in of_torch:
        asks = one.by_url and one.of_pytorch and one.rocm and one.exact and Version(one.exact) >= _OWN_TRITON
        if asks and not (one.indexed or one.alone):
            yield FileFinding(
                rule="triton-not-found", where=one.where, what=f"torch {one.exact} by its address, without an index",
                severity="warning",
                truth="it asks for the triton of its release, which PyPI does not have: pip stops (no matching "
                "distribution found for pytorch-triton-rocm, or triton-rocm)",
                instead=f"torch=={one.exact} --index-url https://download.pytorch.org/whl/rocm{one.rocm}",
            )  # fmt: skip


def _card(subject: Subject, of_torch: Sequence[Install], matrix: Matrix) -> Iterator[FileFinding]:
    """Yield torch from an index of which no wheel has code for the one card that the subject compiles for."""
    values = {row.name: row.value for row in subject.variables}
    named = next((values[name] for name in _TARGETS if _TARGET.fullmatch(values.get(name, ""))), None)
    if named is None or "HSA_OVERRIDE_GFX_VERSION" in values or len({one.rocm for one in of_torch}) != 1:
        return
    torch = of_torch[0]
    served = [row for row in matrix.releases if torch.rocm and row.rocm == torch.rocm]
    listed = [row.architectures for row in served if torch.exact in (None, row.torch)]
    if listed and not torch.by_url and all(one is not None and named not in one for one in listed):
        yield FileFinding(
            rule="card-without-code", where=torch.where, what=f"torch of ROCm {torch.rocm} for {named}",
            severity="warning",
            truth=f"no wheel of torch in that index has code for {named}: on such a card every kernel of torch fails "
            "(no kernel image is available, or invalid device function)",
            instead="./invokew explain names the builds that have it, or HSA_OVERRIDE_GFX_VERSION of a near relative",
        )  # fmt: skip


def _python(subject: Subject, torch: Install, matrix: Matrix) -> Iterator[FileFinding]:
    named = _PYTHON.search(subject.image or "")
    release = _newest(torch, matrix) if named else None
    if named and release is not None and named[1] not in release.pythons:
        yield FileFinding(
            rule="python-without-wheel", where=torch.where, what=f"torch {release.torch} on Python {named[1]}",
            severity="error",
            truth=f"torch {release.torch} for ROCm {release.rocm} has wheels for Python {release.pythons[0]} to "
            f"{release.pythons[-1]}: pip finds none",
            instead=f"an image of Python {release.pythons[-1]}, or a torch that was built for {named[1]}",
        )  # fmt: skip


def _newest(torch: Install, matrix: Matrix) -> Release | None:
    """Return the release that pip takes from PyTorch's index; None where the matrix has none, or a range decides."""
    if not torch.rocm or torch.by_url or not (torch.exact or torch.newest):
        return None
    served = [row for row in matrix.releases if row.rocm == torch.rocm and torch.exact in (None, row.torch)]
    return max(served, key=lambda row: Version(row.torch), default=None)
