"""A cell as it is written and as it is resolved, with the base image that it stands on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rocmatrix.matrix.cells.wheel import Wheel
from rocmatrix.matrix.release import Release
from rocmatrix.matrix.rule import Rule, verdict_of
from rocmatrix.matrix.statement import Digest, Evidence, GfxName, Selector, Strict, Text, Verdict, VersionText

# What a base image is fit for: the CPU's build, or a layout of the wheels for cards.
Kind = Literal["cpu", "bundled", "host-and-device"]
WITH = "-with-"  # between a cell's own name and the companions that were added to it
FILE_TOKEN = r"file-[0-9a-f]{12}"  # stands in a name for the lines of a requirements file, by their hash


class Base(Strict):
    """A base image, the Python its distribution brings, and the packages an image adds to it.

    `serves` states which cells are derived on it: the first base of a kind gives the Python that a name leaves out.
    """

    image: Text
    digest: Digest | None = None
    digest_unknown_because: Text | None = None
    python: VersionText
    packages: list[Text]
    hipcc: bool = False
    serves: list[Kind] = Field(default_factory=list)
    evidence: Evidence

    @property
    def reference(self) -> str:
        """The image by digest where one is known, by tag otherwise."""
        return f"{self.image}@{self.digest}" if self.digest else self.image


class Variable(Strict):
    """An environment variable that images set, with the reason for it; not where `unless` holds."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")]
    value: str
    when: Selector
    unless: list[Selector] = Field(default_factory=list)
    why: Text
    evidence: Evidence

    def applies(self, *, architecture: str | None, torch: str, rocm: str | None) -> bool:
        """Return whether an image of the combination sets it.

        Args:
            architecture: gfx name; None for the CPU.
            torch: version of torch, such as "2.12.1".
            rocm: ROCm version, such as "7.2"; None for a CPU build.
        """
        holds = (each.matches(architecture=architecture, torch=torch, rocm=rocm) for each in (self.when, *self.unless))
        return next(holds) and not any(holds)


class CellEntry(Strict):
    """A cell as written in the file, or derived: names only. `Matrix.cells` gives it resolved.

    `prune` removes other architectures' files from the kernel libraries of bundled wheels, while these are installed.
    """

    release: Text
    architecture: GfxName | None
    base: Text
    recommended: bool = False
    prune: bool = False
    why: Text
    evidence: Evidence

    def name(self, python: str | None = None) -> str:
        """Return the release's name and the architecture; `python` is named where it is not the usual one."""
        parts = (self.release, self.architecture, f"py{python}" if python else None)
        return "-".join(part for part in parts if part)


class Cell(BaseModel):
    """A cell with everything its name stands for: what is rendered, built and run.

    One that is not `written` was derived for a request: its files stand below .rocmatrix/, not in images/. `added` are
    the files among its wheels that `companions` brought.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    release: Release
    architecture: str | None
    cards: tuple[str, ...]
    base: Base
    recommended: bool
    prune: bool
    official: bool
    why: str
    evidence: Evidence
    environment: tuple[Variable, ...]
    rules: tuple[Rule, ...]
    wheels: tuple[tuple[str, Wheel], ...]
    companions: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    written: bool = True

    @property
    def image_name(self) -> str:
        """The cell's name, of which the companions that were added are a part."""
        return self.name

    @property
    def names_python(self) -> bool:
        """Whether the name holds the Python version, as it does where that is not the usual one."""
        return self.name.partition(WITH)[0].endswith(f"-py{self.python}")

    def adding(self, companions: Iterable[str]) -> Cell:
        """Return the cell with these companions next to its own, and with all of them in its name."""
        both = tuple(sorted({*self.companions, *companions}))
        stem = self.name.partition(WITH)[0]
        name = WITH.join([stem, *(["-".join(both)] if both else [])])
        return self.model_copy(update={"name": name, "companions": both})

    @property
    def python(self) -> str:
        """The Python version of the image, such as 3.12: the one its base brings."""
        return self.base.python

    @property
    def broken_by(self) -> tuple[Rule, ...]:
        """The rules that call this combination broken."""
        return tuple(rule for rule in self.rules if rule.verdict == "broken" and rule.decides)

    @property
    def verdict(self) -> Verdict:
        """The worst that a rule states of this combination, `untested` where none applies."""
        return verdict_of(self.rules)

    @property
    def requirement(self) -> str:
        """What pip is asked for to get torch with this cell's kernels."""
        return self.release.requirement(self.architecture)

    @property
    def one_architecture(self) -> bool:
        """Whether its images are to hold the kernels of its own architecture alone."""
        return self.prune or self.release.by_architecture

    @property
    def lock_name(self) -> str:
        """The name of the cell's lock in matrix/locks.yaml."""
        return self.release.lock_name(self.architecture)

    @property
    def unlocked_because(self) -> str | None:
        """Why the cell cannot be built from checked wheels alone, None where it can."""
        if not any(wheel.name == "torch" for _, wheel in self.wheels):
            return f"no hash is recorded for torch {self.release.torch} on Python {self.python}"
        if not any(wheel.index == "python" for _, wheel in self.wheels):
            return f"the packages other than torch are not resolved yet for Python {self.python}"
        names = {wheel.name for _, wheel in self.wheels}
        if missing := [name for name in self.release.device_packages(self.architecture or "") if name not in names]:
            return f"no hash is recorded for {', '.join(missing)}"
        return None
