"""Rules that follow from other data, so that what a list of releases states is not repeated by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import date, timedelta

from rocmatrix.matrix.library import Libraries, MissingKernels
from rocmatrix.matrix.release import Release
from rocmatrix.matrix.rule import Rule
from rocmatrix.matrix.statement import Evidence, Selector

LOOK_AGAIN_AFTER = timedelta(days=365)


def rules(releases: Iterable[Release], architectures: Collection[str], libraries: Libraries) -> tuple[Rule, ...]:
    """Return the rules that follow from the releases and the libraries, for the architectures named.

    Args:
        releases: all releases of the matrix.
        architectures: gfx names to make rules for.
    """
    released = [release for release in releases if release.rocm is not None]
    return (
        *_in_no_release(released, architectures),
        *(_not_compiled(release, architectures) for release in released if release.architectures is not None),
        *_never_paired(released),
        *library_rules(libraries),
    )


def library_rules(libraries: Libraries) -> tuple[Rule, ...]:
    """Return a rule for every statement that a library lacks kernels."""
    return (
        *(_no_kernels(entry, "rocBLAS") for entry in libraries.rocblas),
        *(_no_kernels(entry, "RCCL") for entry in libraries.rccl),
    )


def _in_no_release(releases: list[Release], architectures: Collection[str]) -> Iterator[Rule]:
    listed = {name for release in releases for name in release.architectures or ()}
    for name in architectures if releases else ():
        if name not in listed:
            yield _broken(
                f"{name}-in-no-release",
                when=Selector(architectures=[name], rocm=">=0"),
                reason=f"none of the {len(releases)} ROCm releases of torch known here holds device code for {name}",
                sources=["the architecture lists in matrix/releases.yaml, each with its own sources"],
                basis=[release.device_code.evidence for release in releases],
            )


def _not_compiled(release: Release, architectures: Collection[str]) -> Rule:
    compiled = release.architectures or ()
    return _broken(
        f"not-compiled-{release.name}",
        when=Selector(
            architectures=[name for name in architectures if name not in compiled],
            torch=f"=={release.torch}",
            rocm=f"=={release.rocm}",
        ),
        reason=f"torch {release.torch} for ROCm {release.rocm} holds device code for {', '.join(compiled)} only",
        basis=[release.device_code.evidence],
    )


def _never_paired(releases: list[Release]) -> Iterator[Rule]:
    """Yield a rule a torch version whose ROCm versions are all known: there are no others."""
    for torch in dict.fromkeys(release.torch for release in releases):
        own = [release for release in releases if release.torch == torch]
        if all(release.architectures is not None for release in own):
            versions = [str(release.rocm) for release in own]
            yield _broken(
                f"rocm-versions-of-torch-{torch}",
                when=Selector(torch=f"=={torch}", rocm=",".join(f"!={version}" for version in versions)),
                reason=f"torch {torch} was released for ROCm {', '.join(versions)} only",
                basis=[release.evidence for release in own],
            )


def _no_kernels(entry: MissingKernels, library: str) -> Rule:
    return Rule(
        id=entry.id,
        when=entry.when,
        verdict="broken",
        reason=f"{library} has no kernels for it: {entry.note}",
        evidence=entry.evidence,
        expires=look_again(entry.evidence.date),
    )


def _broken(
    rule_id: str, *, when: Selector, reason: str, basis: list[Evidence], sources: list[str] | None = None
) -> Rule:
    latest = max(evidence.date for evidence in basis)
    sources = sources or list(dict.fromkeys(source for evidence in basis for source in evidence.sources))
    return Rule(
        id=rule_id,
        when=when,
        verdict="broken",
        reason=reason,
        evidence=Evidence(sources=sources, confidence="derived", date=latest),
        expires=look_again(latest),
    )


def look_again(day: str) -> str:
    """Return when a statement of `day` that names no expiry asks to be looked at again."""
    return (date.fromisoformat(day) + LOOK_AGAIN_AFTER).isoformat()
