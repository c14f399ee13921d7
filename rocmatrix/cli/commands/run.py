"""Commands that run anything in a cell's image, say how to in each engine's language, and make a place to work in."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.cli.commands.common import choose, known_matrix, print_json
from rocmatrix.runtime.console import edge, say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.cli.options.run import Devcontainer, Run, Session
    from rocmatrix.containers.emit.target import Host, Target
    from rocmatrix.containers.runspec import Chosen, Explanation, RunSpec
    from rocmatrix.matrix.resolver.resolve import Choice

HERE = Path("/")
WIDTH = 110


@edge
def run(asked: Run, *, after_dashes: Sequence[str] = ()) -> None:
    """Run a command in the cell's image, or a shell; or print how, for one target, with every reason.

    Raises RM404 for a recording on which something is to be run, and where numbers are none.
    """
    from rocmatrix.containers.emit import target as targets
    from rocmatrix.jobs import interactive as session

    chosen = asked.chosen(after_dashes)
    target = targets.target(asked.target or "docker")
    if asked.sysfs and not _only_printed(asked):
        raise RocmatrixError("RM404", what="--sysfs is a recording, and nothing runs on one", next="Add --explain.")
    root = _root(asked)
    host = session.host_of(root)
    if asked.target in targets.HOST_ALONE:
        _print_run(asked, target, targets.NO_SPEC, host)
        return
    choice = choose(known_matrix(), asked.request, host.hardware, force=asked.force)
    chosen = _for_editor(asked, chosen, choice, host) if asked.target == "devcontainer" else chosen
    # before the build, which takes minutes: a card that is missing is told at once
    spec = session.spec_for(chosen, cell=choice.cell, hardware=host.hardware, root=root, by_cdi_name=asked.cdi)
    if _only_printed(asked):
        _print_run(asked, target, spec, host)
        return
    _run_here(asked, chosen.run_folder, choice, spec)


def _only_printed(asked: Run) -> bool:
    """Whether nothing is run, but printed how."""
    return bool(asked.explain or asked.target or asked.dry_run)


def _root(asked: Session) -> Path:
    """Return the root of this machine's tree, or of the recorded one's."""
    return Path(asked.sysfs).resolve() if asked.sysfs else HERE


def _for_editor(asked: Session, chosen: Chosen, choice: Choice, host: Host) -> Chosen:
    from rocmatrix.jobs import devcontainer as workplace

    command = chosen.command or tuple(workplace.smoke_argv(choice.cell, host.hardware, asked.request))
    user, features = workplace.user_of(asked.user or None), {*chosen.features} | workplace.FEATURES
    return replace(chosen, command=command, user=user, features=features)


def _run_here(asked: Run, run_folder: Path, choice: Choice, spec: RunSpec) -> None:
    from rocmatrix.cli.commands.jobs import built_image
    from rocmatrix.jobs import interactive as session

    built = built_image(choice, base=asked.base or None, wheelhouse=None, dry_run=False)
    spec = replace(spec, image=built.image.id) if built.image else spec
    run_folder.mkdir(parents=True, exist_ok=True)
    status = session.attached(session.attached_argv(spec))
    if (error := session.refused(status)) is not None:
        say(error.render())
    sys.exit(status)


def _print_run(asked: Run, target: Target, spec: RunSpec, host: Host) -> None:
    from rocmatrix.jobs import interactive as session

    if asked.explain:
        rows = (*(() if asked.target else session.terminal_rows()), *target.rows(spec, host))
        if asked.json:
            print_json({"target": asked.target or "docker", "cell": spec.cell, "rows": [vars(row) for row in rows]})
        else:
            print_rows(rows)
        return
    _hint(asked.target, spec, host)
    text = target.text(spec, host) if asked.target else shlex.join(session.attached_argv(spec)) + "\n"
    if not asked.to:
        print(text, end="")
        return
    _write(asked.target, Path(asked.to).resolve(), text)


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


def _write(target: str, to: Path, text: str) -> None:
    from rocmatrix.containers.emit import cdi

    if target == "cdi":
        cdi.conflict(to)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(text, encoding="utf-8")
    say(f"wrote {to}")


@edge
def devcontainer(asked: Devcontainer) -> None:
    """Write .devcontainer/: the cell's image as a place to work in, for this host and user."""
    from rocmatrix.jobs import devcontainer as workplace
    from rocmatrix.jobs import interactive as session

    chosen = asked.chosen()
    host = session.host_of(_root(asked))
    choice = choose(known_matrix(), asked.request, host.hardware, force=asked.force)
    chosen = _for_editor(asked, chosen, choice, host)
    spec = session.spec_for(chosen, cell=choice.cell, hardware=host.hardware)
    folder = Path(asked.to).resolve() if asked.to else ROOT / workplace.FOLDER
    workplace.write(folder, workplace.files(spec))
    say(f"wrote {folder} for user {chosen.user}")
    say(f"hint: ./invokew build --cell {choice.cell.name}")
    say("then open the checkout in an editor that knows dev containers")
    if shutil.which("docker") is None:
        say("there is no `docker` command on the PATH, which editors call")
