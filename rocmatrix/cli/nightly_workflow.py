"""The nightly workflow for self-hosted runners with AMD cards: a view of the matrix, kept by `./invokew render`."""

from __future__ import annotations

from dataclasses import dataclass

from rocmatrix.matrix.matrix import Matrix
from rocmatrix.runtime import templates

FILE = ".github/workflows/nightly.yml"
TEMPLATE = "nightly.yml.j2"


@dataclass(frozen=True, kw_only=True)
class Action:
    """An action by the commit that its release's tag names. `read` states where that was seen, and when."""

    name: str
    version: str
    commit: str
    read: str

    @property
    def reference(self) -> str:
        """What a workflow's `uses` takes."""
        return f"{self.name}@{self.commit}"


CHECKOUT = Action(
    name="actions/checkout",
    version="v7.0.1",
    commit="3d3c42e5aac5ba805825da76410c181273ba90b1",
    read="the tag v7.0.1 in a copy of github.com/actions/checkout, 2026-11-21",
)
UPLOAD = Action(
    name="actions/upload-artifact",
    version="v7.0.0",
    commit="bbbca2ddaa5d8feaa63e36b76fdaad77386f024f",
    read="the tag v7.0.0 in a copy of github.com/actions/upload-artifact, 2026-11-21",
)


def text(matrix: Matrix) -> str:
    """Return the workflow. Its own language uses double braces, so the template's marks are square brackets."""
    locked = {c.architecture for c in matrix.cells if c.architecture and not c.unlocked_because and not c.broken_by}
    template = templates.environment(brackets=True).get_template(TEMPLATE)
    return template.render(architectures=sorted(locked), checkout=CHECKOUT, upload=UPLOAD)
