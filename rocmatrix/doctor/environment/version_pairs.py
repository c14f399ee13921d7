"""Pairs of torch and ROCm that are asked for, against the pairs that were built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocmatrix.doctor.environment.lint import LintFinding
from rocmatrix.doctor.environment.lint_input import Pair, Subject
from rocmatrix.matrix.matrix import Matrix
from rocmatrix.matrix.release import Release

RULE = "pair-never-built"
SOURCE = "pytorch/test-infra:tools/scripts/generate_binary_build_matrix.py"
# releases of torch from before the matrix, as far as they may have been built for ROCm
_BEFORE = tuple(f"1.{minor}.{patch}" for minor in range(7, 14) for patch in range(3))


def unbuilt(subjects: Iterable[Subject], matrix: Matrix) -> Iterator[LintFinding]:
    """Yield a finding for every pair that no release of the matrix has, with what was built instead."""
    releases = [release for release in matrix.releases if release.rocm is not None]
    for subject in subjects:
        for pair in subject.pairs:
            fitting = [release for release in releases if _fits(pair, release)]
            if not any(_served(pair, release) for release in fitting):
                yield _finding(subject, pair, releases, fitting)


def _finding(subject: Subject, pair: Pair, releases: Sequence[Release], fitting: Sequence[Release]) -> LintFinding:
    served = [release for release in releases if _served(pair, release)]
    near = [*fitting, *served]
    unknown = _unknown(pair, releases, fitting)
    return LintFinding(
        rule=RULE,
        subject=subject.name,
        where=pair.where,
        what=f"torch{pair.torch or ' (any)'} from the index of ROCm {pair.rocm}",
        kind="never built",
        severity="note" if unknown else "error",
        truth="; ".join(unknown or _built(pair, fitting, served)),
        instead="./invokew matrix shows every pair that was built",
        source=near[0].evidence.summary if near else SOURCE,
    )


def _built(pair: Pair, fitting: Sequence[Release], served: Sequence[Release]) -> Iterator[str]:
    if fitting:
        yield f"torch {pair.torch}".rstrip() + f" was built for ROCm {_list(one.rocm or '' for one in fitting)}"
    if served:
        yield f"ROCm {pair.rocm} carries torch {_list(one.torch for one in served)}"
    else:
        yield f"no release of torch was built for ROCm {pair.rocm}"


def _unknown(pair: Pair, releases: Sequence[Release], fitting: Sequence[Release]) -> list[str]:
    """Return why the matrix has no record of a pair; empty where it can."""
    if not fitting and _beyond(pair, releases):
        return ["this torch is newer than the matrix knows"]
    first = min(Version(release.torch) for release in releases)
    oldest = min(Version(release.rocm) for release in releases if release.rocm)
    if Version(pair.rocm) < oldest and any(SpecifierSet(pair.torch).contains(torch) for torch in _BEFORE):
        return [f"older than the matrix knows, which begins with torch {first} and ROCm {oldest}"]
    return []


def _fits(pair: Pair, release: Release) -> bool:
    return SpecifierSet(pair.torch).contains(release.torch, prereleases=True)


def _served(pair: Pair, release: Release) -> bool:
    return release.rocm is not None and Version(release.rocm) == Version(pair.rocm)


def _beyond(pair: Pair, releases: Sequence[Release]) -> bool:
    """Return whether a torch is asked for that is newer than every release known."""
    newest = max(Version(release.torch) for release in releases)
    versions = (row.version.removesuffix(".*") for row in SpecifierSet(pair.torch))
    return any(Version(version) > newest for version in versions)


def _list(versions: Iterable[str]) -> str:
    return ", ".join(sorted(set(versions), key=Version))
