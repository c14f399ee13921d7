"""Releases of torch: who serves them, for which Pythons, and with device code for which architectures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from packaging.utils import canonicalize_name
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rocmatrix.matrix import gfx
from rocmatrix.matrix.statement import Evidence, GfxName, Strict, Text, VersionText

# Final releases only: names, rules and ranges are made of these.
Final = Annotated[str, StringConstraints(pattern=r"^(0|[1-9]\d*)(\.(0|[1-9]\d*))*$")]

_ARCHITECTURE = "{architecture}"


class DeviceCode(Strict):
    """Where a release keeps its kernels, and for which architectures; None where they have not been listed.

    `bundled` wheels carry ROCm's libraries and every architecture. In the `host-and-device` layout ROCm comes
    as packages of its own, and `packages` hold the kernels of one `{architecture}` each.
    """

    layout: Literal["bundled", "host-and-device"]
    architectures: list[GfxName] | None
    packages: list[Text] = Field(default_factory=list)
    evidence: Evidence


class Series(Strict):
    """Releases that were built alike: each torch of `torch`, with its companions, for each ROCm of `rocm`.

    An empty `rocm` is the CPU build. `index` and `requirement` may hold {torch}, {rocm} and {architecture}.
    `pins` are version ranges that these torches ask of other packages.
    """

    torch: dict[Final, dict[Text, VersionText]] = Field(min_length=1)
    rocm: list[Final]
    index: Text
    requirement: Text
    pythons: list[VersionText]
    free_threaded: list[VersionText] = Field(default_factory=list)
    pins: dict[Text, Text] = Field(default_factory=dict)
    device_code: DeviceCode
    evidence: Evidence

    def releases(self) -> Iterator[Release]:
        """Yield the single releases, older ones first."""
        for torch, companions in self.torch.items():
            for rocm in self.rocm or (None,):
                yield self._release(torch, rocm, companions)

    def _release(self, torch: str, rocm: str | None, companions: dict[str, str]) -> Release:
        def filled(text: str) -> str:
            return text.replace("{torch}", torch).replace("{rocm}", rocm or "")

        return Release(
            torch=torch,
            rocm=rocm,
            index=filled(self.index),
            requirement_form=filled(self.requirement),
            companions=companions,
            pythons=self.pythons,
            free_threaded=self.free_threaded,
            pins=self.pins,
            device_code=self.device_code,
            evidence=self.evidence,
        )


class Release(BaseModel):
    """One build of torch for one ROCm, or for none. `companions` are the versions that belong to it."""

    model_config = ConfigDict(frozen=True)

    torch: str
    rocm: str | None
    index: str
    requirement_form: str
    companions: dict[str, str]
    pythons: list[str]
    free_threaded: list[str]
    pins: dict[str, str]
    device_code: DeviceCode
    evidence: Evidence

    @property
    def name(self) -> str:
        """`rocm6.3-torch2.7.1`, or `cpu-torch2.13.0` for the build with no accelerator."""
        return f"{'rocm' + self.rocm if self.rocm else 'cpu'}-torch{self.torch}"

    @property
    def architectures(self) -> list[str] | None:
        """The architectures with device code in the release, None where they are not known."""
        return self.device_code.architectures

    def requirement(self, architecture: str | None) -> str:
        """Return what pip is asked for to get torch with the kernels of one architecture."""
        return self.requirement_form.replace(_ARCHITECTURE, architecture or "")

    @property
    def by_architecture(self) -> bool:
        """Whether what is installed, and so the lock, differs from one architecture to the next."""
        return bool(self.device_code.packages)

    def lock_name(self, architecture: str | None) -> str:
        """Return the name of the lock: the release's, with the architecture where each has packages of its own."""
        return f"{self.name}-{architecture}" if self.by_architecture and architecture else self.name

    def owns_lock(self, name: str) -> bool:
        """Return whether a lock is one of this release."""
        head, _, architecture = name.rpartition("-")
        return name == self.name or (self.by_architecture and head == self.name and gfx.is_name(architecture))

    def foreign(self, package: str, architecture: str | None) -> bool:
        """Return whether a package holds kernels for another architecture: torch may ask for all of them.

        A family's package is its own for each architecture of it: torch[device-gfx1151] of ROCm 10.0 asks for
        amd-torch-device-gfx115x as well, which holds the attention kernels. Also seen: gfx11 and gfx12-0.
        """
        name = canonicalize_name(package)
        prefixes = [form.partition(_ARCHITECTURE)[0] for form in self.device_code.packages]
        kinds = [name.removeprefix(prefix) for prefix in prefixes if name.startswith(prefix)]
        return any(not _is_for(kind, architecture or "") for kind in kinds)

    def device_packages(self, architecture: str) -> tuple[str, ...]:
        """Return the packages that hold the kernels of one architecture; none where the wheel holds them."""
        return tuple(name.replace(_ARCHITECTURE, architecture) for name in self.device_code.packages)


def _is_for(kind: str, architecture: str) -> bool:
    """Return whether the end of a device package's name, such as gfx110x or gfx12-0, covers an architecture."""
    return kind == architecture or architecture.startswith(kind.replace("-", "").rstrip("x"))
