"""Commands that run anything in a cell's image, say how to in each engine's language, and make a place to work in."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.cli.commands.common import choose, known_matrix, print_json
from rocmatrix.containers.device_selection import card_numbers
from rocmatrix.runtime.console import edge, say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.containers.emit.target import Host, Target
    from rocmatrix.containers.runspec import Explanation, RunSpec
    from rocmatrix.jobs.interactive import Choices
    from rocmatrix.matrix.resolver.resolve import Choice, Request

HERE = Path("/")
WIDTH = 110


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a person asked of `run`. An empty `target` means this machine's engine; `sysfs` a recorded machine."""

    request: Request
    choices: Choices
    target: str = ""
    explain: bool = False
    as_json: bool = False
    to: Path | None = None
    sysfs: Path | None = None
    base: str | None = None
    force: bool = False
    dry_run: bool = False

    @property
    def only_told(self) -> bool:
        """Whether nothing is run, but said how."""
        return bool(self.explain or self.target or self.dry_run)


@edge
def asked(  # noqa: PLR0913 -- what can be typed, all by keyword
    request: Request,
    *,
    command: Sequence[str] = (),
    features: Sequence[str] = (),
    cards: str = "",
    user: str = "",
    data: str = "",
    output: str = "",
    by_cdi_name: bool = False,
    to: str = "",
    sysfs: str = "",
    **others: Any,
) -> Asked:
    """Return what was typed as data. Raises RM404 where numbers are none."""
    from rocmatrix.jobs.interactive import Choices

    choices = Choices(
        command=tuple(command),
        cards=card_numbers(cards),
        features=frozenset(features),
        run_folder=Path(output or "TRAINING").resolve(),
        data=Path(data).resolve() if data else None,
        by_cdi_name=by_cdi_name,
        user=user or None,
    )
    place, recording = (Path(text).resolve() if text else None for text in (to, sysfs))
    return Asked(request=request, choices=choices, to=place, sysfs=recording, **others)


@edge
def run(asked: Asked) -> None:
    """Run a command in the cell's image, or a shell; or say how, for one target, with every reason."""
    from rocmatrix.containers.emit import target as targets
    from rocmatrix.jobs import interactive as session

    target = targets.target(asked.target or "docker")
    if asked.sysfs and not asked.only_told:
        raise RocmatrixError("RM404", what="--sysfs is a recording, and nothing runs on one", next="Add --explain.")
    root = asked.sysfs or HERE
    host = session.host_of(root)
    if asked.target in targets.HOST_ALONE:
        _tell(asked, target, targets.NO_SPEC, host)
        return
    choice = choose(known_matrix(), asked.request, host.hardware, force=asked.force)
    choices = _for_editor(asked, choice, host) if asked.target == "devcontainer" else asked.choices
    # before the build, which takes minutes: a card that is missing is told at once
    spec = session.spec_for(choices, cell=choice.cell, hardware=host.hardware, root=root)
    if asked.only_told:
        _tell(asked, target, spec, host)
        return
    _run_here(asked, choice, spec)


def _for_editor(asked: Asked, choice: Choice, host: Host) -> Choices:
    from rocmatrix.jobs import devcontainer as workplace

    own = asked.choices
    command = own.command or tuple(workplace.smoke_argv(choice.cell, host.hardware, asked.request))
    user, features = workplace.user_of(own.user), own.features | workplace.FEATURES
    return replace(own, command=command, user=user, features=features)


def _run_here(asked: Asked, choice: Choice, spec: RunSpec) -> None:
    from rocmatrix.cli.commands.jobs import built_image
    from rocmatrix.jobs import interactive as session

    built = built_image(choice, base=asked.base, wheelhouse=None, dry_run=False)
    spec = replace(spec, image=built.image.id) if built.image else spec
    asked.choices.run_folder.mkdir(parents=True, exist_ok=True)
    status = session.attached(session.attached_argv(spec))
    if (error := session.refused(status)) is not None:
        say(error.render())
    sys.exit(status)


def _tell(asked: Asked, target: Target, spec: RunSpec, host: Host) -> None:
    from rocmatrix.jobs import interactive as session

    if asked.explain:
        rows = (*(() if asked.target else session.terminal_rows()), *target.rows(spec, host))
        if asked.as_json:
            print_json({"target": asked.target or "docker", "cell": spec.cell, "rows": [vars(row) for row in rows]})
        else:
            print_rows(rows)
        return
    _hint(asked.target, spec, host)
    text = target.text(spec, host) if asked.target else shlex.join(session.attached_argv(spec)) + "\n"
    if asked.to is None:
        print(text, end="")
        return
    _write(asked, text)


def print_rows(rows: tuple[Explanation, ...]) -> None:
    """Print each flag whole on a line of its own, for it is to be copied, with its reason and source below."""
    for row in rows:
        if row.value is not None:
            print(row.option, *_below(row), sep="\n")
    print("\nNot given:")
    for row in rows:
        if row.value is None:
            print(row.option, *_below(row), sep="\n")


def _below(row: Explanation) -> list[str]:
    space = "    "
    return [*textwrap.wrap(row.reason, WIDTH, initial_indent=space, subsequent_indent=space), f"{space}[{row.source}]"]


def _hint(target: str, spec: RunSpec, host: Host) -> None:
    """Report on standard error what the text alone does not show."""
    from rocmatrix.jobs import interactive as session

    if target != "podman":
        return
    say(f"podman keeps images of its own: docker save {spec.image} | podman load")
    if host.rootless and (missing := session.missing_groups(spec, os.getgroups())):
        numbers = ", ".join(map(str, missing))
        say(f"this user is not in group {numbers}, so rootless podman cannot open the nodes: join it and log in again")


def _write(asked: Asked, text: str) -> None:
    from rocmatrix.containers.emit import cdi

    assert asked.to is not None
    if asked.target == "cdi":
        cdi.conflict(asked.to)
    asked.to.parent.mkdir(parents=True, exist_ok=True)
    asked.to.write_text(text, encoding="utf-8")
    say(f"wrote {asked.to}")


@edge
def devcontainer(asked: Asked) -> None:
    """Write .devcontainer/: the cell's image as a place to work in, for this host and user."""
    from rocmatrix.jobs import devcontainer as workplace
    from rocmatrix.jobs import interactive as session

    host = session.host_of(asked.sysfs or HERE)
    choice = choose(known_matrix(), asked.request, host.hardware, force=asked.force)
    choices = _for_editor(asked, choice, host)
    spec = session.spec_for(choices, cell=choice.cell, hardware=host.hardware)
    folder = asked.to or ROOT / workplace.FOLDER
    workplace.write(folder, workplace.files(spec))
    say(f"wrote {folder} for user {choices.user}")
    say(f"hint: ./invokew build --cell {choice.cell.name}")
    say("then open the checkout in an editor that knows dev containers")
    if shutil.which("docker") is None:
        say("there is no `docker` command on the PATH, which editors call")
