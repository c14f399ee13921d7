"""`./invokew run` and `devcontainer`: a command in a cell's image, or how each engine runs it; a dev container."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.cli.commands.common import choose, hardware_here, known_matrix, print_json
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import ALLOW_UNLOCKED, BASE, CARDS, DRY_RUN, FORCE, WithCompanions
from rocmatrix.runtime.console import say, writing
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.input.named_path import expanded
from rocmatrix.runtime.option import option, options_of
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.containers.emit.target import Host, Target
    from rocmatrix.containers.runspec import Chosen, Explanation, RunSpec
    from rocmatrix.matrix.resolver.resolve import Choice

HERE = Path("/")
WIDTH = 110
MOST_USERS = 2**32 - 1  # user_namespaces(7): the largest 32-bit number stands for none
_USER = re.compile(r"\d{1,10}:\d{1,10}", re.ASCII)
FEATURE = "with_"  # begins the option of a feature of containers, `rocmatrix.containers.capability.FEATURES`


@dataclass(frozen=True, kw_only=True)
class Session(WithCompanions):
    """A container that a person works in."""

    cards: str = option(CARDS, metavar="INT,...")
    user: str = option("user and group ids, such as 1000:1000 (default: your own)", metavar="UID:GID")
    to: str = option("file to write instead of standard output", metavar="PATH")
    sysfs: str = option("folder of a recorded machine, to show how it would run there", metavar="PATH")
    force: bool = option(FORCE, default=False)

    def chosen(self, command: Sequence[str] = (), **more: Any) -> Chosen:
        """Return what is chosen for the container; the image is the cell's. Raises RM404 where numbers are none."""
        from rocmatrix.containers.device_selection import card_numbers
        from rocmatrix.containers.runspec import Chosen
        from rocmatrix.jobs.interactive import own_user

        about = {"run_folder": Path("TRAINING").resolve(), **more}
        _require_numbers(self.user)
        _require_folder(about["run_folder"])
        return Chosen(
            image="",
            command=tuple(command),
            user=self.user or own_user(),
            cards=card_numbers(self.cards) or None,
            **about,
        )


@dataclass(frozen=True, kw_only=True)
class Devcontainer(Session):
    """Options of `devcontainer`."""

    to: str = option("the folder to write (default: .devcontainer)", metavar="PATH")


@dataclass(frozen=True, kw_only=True)
class Run(Session):
    """Options of `run`. Each `with_NAME` is a feature of containers by that name."""

    base: str = option(BASE, metavar="IMAGE")
    command: str = option("what to run; or write it after `--` (default: a shell)", metavar="COMMAND")
    target: str = option(
        "print how to run it instead: docker, docker-sdk, compose, podman, cdi or devcontainer",
        typed="for",
        metavar="TARGET",
    )
    explain: bool = option(
        "print every flag with its reason and its source, and what is not given and why", default=False
    )
    json: bool = option("with --explain: print it as JSON, for programs", default=False)
    data: Sequence[str] = option(
        "a file or folder of the host that the command may read, below /data; may be repeated",
        default=(),
        metavar="PATH",
    )
    code: str = option("a folder of your own code, which the command may read, at /code", metavar="PATH")
    code_writable: bool = option("let the command change the folder of --code", default=False)
    env: Sequence[str] = option(
        "NAME=VALUE, or NAME for this shell's value; may be repeated. Values are written nowhere",
        default=(),
        metavar="NAME[=VALUE]",
    )
    env_file: str = option("a file with NAME=VALUE lines, as a shell reads them", metavar="PATH")
    port: Sequence[str] = option(
        "publish a port of the command on 127.0.0.1, such as 8888 or 9999:8888; it reaches the network then",
        default=(),
        metavar="[HOST:]PORT",
    )
    output: str = option(
        "the folder of the host that the command may write, /training inside (default: TRAINING)", metavar="PATH"
    )
    cdi: bool = option(
        "request cards by their CDI names (amd.com/gpu=0); `run --for cdi` writes the specification that has them",
        default=False,
    )
    with_network: bool = option("reach the network through the engine's private bridge", default=False)
    with_debugger: bool = option("for rocgdb and py-spy: SYS_PTRACE, and no seccomp filter", default=False)
    with_numa: bool = option(
        "bind memory to NUMA nodes: SYS_NICE, which allows mbind in the engine's seccomp filter", default=False
    )
    with_ipc: bool = option("share /dev/shm with other containers of this host", default=False)
    with_rdma: bool = option(
        "RDMA adapters: their nodes, locked memory without a limit, and the host's network", default=False
    )
    dry_run: bool = option(DRY_RUN, default=False)
    allow_unlocked: bool = option(ALLOW_UNLOCKED, default=False)

    def chosen(self, command: Sequence[str] = (), **more: Any) -> Chosen:
        """Return what is chosen for the container; `command` stands after `--`. Raises RM111, RM112, RM404."""
        from rocmatrix.containers import caller_settings

        return super().chosen(
            self.words or command,
            run_folder=Path(self.output or "TRAINING").resolve(),
            features=self.features,
            more=(
                *caller_settings.folders(
                    [Path(path).resolve() for path in self.data],
                    Path(self.code).resolve() if self.code else None,
                    writable=self.code_writable,
                ),
                *caller_settings.environment(self.variables),
                *caller_settings.ports(self.port),
            ),
            **more,
        )

    @property
    def words(self) -> list[str]:
        """The words of --command, as a shell splits them. Raises RM404 where a quote is not closed."""
        try:
            return shlex.split(self.command)
        except ValueError as error:
            what = f"--command {self.command!r}: {str(error)[:1].lower()}{str(error)[1:]}"
            next_step = "Close the quotes, or write the command after `--` instead."
            raise RocmatrixError("RM404", what=what, next=next_step) from error

    @property
    def variables(self) -> dict[str, str]:
        """Variables with their values. Raises RM111."""
        from rocmatrix.containers import caller_settings

        return caller_settings.variables(self.env, expanded(self.env_file) if self.env_file else None)

    @property
    def features(self) -> frozenset[str]:
        """The features that were asked for, by name."""
        switches = (name for name, each in options_of(type(self)).items() if each.default is False)
        named = (name for name in switches if name.startswith(FEATURE) and getattr(self, name))
        return frozenset([*(name.removeprefix(FEATURE) for name in named), *(["network"] if self.port else [])])


@command(
    Run,
    about="Run a command, or a shell, in a cell's image: with the mounts and devices that it needs, with least "
    "privilege; or explain them.",
)
def run(args: Run) -> None:
    """Run a command in the cell's image, or a shell; or print how, for one target, with every reason.

    Raises RM404 for a recording on which something is to be run, and where numbers are none.
    """
    from rocmatrix.containers.emit import target as targets
    from rocmatrix.jobs import interactive

    chosen = args.chosen(_after_dashes(sys.argv))
    target = targets.target(args.target or "docker")
    if args.sysfs and not _only_printed(args):
        raise RocmatrixError("RM404", what="--sysfs is a recording, and nothing runs on one", next="Add --explain.")
    root, host = _root(args), _host(args)
    if target.host_alone:
        _print_run(args, target, targets.NO_SPEC, host)
        return
    choice = choose(known_matrix(), args.request, host.hardware, force=args.force, allow_unlocked=args.allow_unlocked)
    if not (args.target or args.sysfs or chosen.cards):
        chosen = _by_shell(chosen, choice, host)
    if target.for_editor:
        chosen, host = _for_editor(args, chosen, choice, host)
    elif _under_rootless(args):
        chosen = replace(chosen, rootless=True, user=interactive.own_user())
    elif args.target == "podman":
        chosen = replace(chosen, device_rules=not host.rootless)
    # before the build, which takes minutes: a card that is missing is told at once
    spec = interactive.spec_for(chosen, cell=choice.cell, hardware=host.hardware, root=root, by_cdi_name=args.cdi)
    if _only_printed(args):
        _print_run(args, target, spec, host)
        return
    _run_here(args, chosen.run_folder, choice, spec)


def _by_shell(chosen: Chosen, choice: Choice, host: Host) -> Chosen:
    """Return the choices with the cards that this shell's variables leave, where none are named. Raises RM303."""
    from rocmatrix.jobs.cards.requirement import cards_of_shell

    return replace(chosen, cards=cards_of_shell(choice.cell, host.hardware) or None)


def _require_numbers(user: str) -> None:
    """Raise RM404 unless `user` is empty or a user's and a group's number, as the engine takes them."""
    if user and not (_USER.fullmatch(user) and max(map(int, user.split(":"))) < MOST_USERS):
        what = f"--user takes two numbers such as 1000:1000, not {user!r}"
        raise RocmatrixError("RM404", what=what, next="`id -u` and `id -g` print yours, which are the default.")


def _require_folder(output: Path) -> None:
    if output.exists() and not output.is_dir():
        what = "the folder to write is a file"
        raise RocmatrixError("RM404", what=what, where=str(output), next="Name a folder with --output.")


def _published(spec: RunSpec) -> None:
    """Report where a browser finds what the command serves, and that it reaches the network for it."""
    from rocmatrix.containers.settings import Port

    if found := spec.of(Port):
        say(
            f"published: {', '.join(f'http://127.0.0.1:{port.host} is port {port.container} inside' for port in found)}"
        )
        say("  inside, a server has to listen on 0.0.0.0; and the command reaches the network, as with --with-network")


def _after_dashes(argv: list[str]) -> list[str]:
    """Return what stands after `--`, word by word; invoke joins the words, and with them what was quoted."""
    return argv[argv.index("--") + 1 :] if "--" in argv else []


def _only_printed(args: Run) -> bool:
    """Return whether nothing is run, but printed how."""
    return bool(args.explain or args.target or args.dry_run)


def _under_rootless(args: Run) -> bool:
    """Return whether this machine's engine runs it as this user and is rootless; podman and a recording have none.

    Raises RM404 for another user: a number of such an engine's containers is no user of this host.
    """
    from rocmatrix.containers import engine

    if args.sysfs or args.target == "podman" or not engine.is_rootless():
        return False
    _require_own_user(args)
    return True


def _require_own_user(args: Session) -> None:
    from rocmatrix.jobs.interactive import own_user

    if args.user not in ("", "0:0", own_user()):
        what = f"--user {args.user} under a rootless engine, which runs a container as {own_user()} alone"
        raise RocmatrixError("RM404", what=what, next="Leave --user out, or use the engine that runs as root.")


def _root(args: Session) -> Path:
    """Return the root of this machine's tree, or of the recorded one's. Raises RM310 where that is no folder."""
    from rocmatrix.cli.commands.doctor import tree

    return tree(args.sysfs).resolve() if args.sysfs else HERE


def _host(args: Session) -> Host:
    """Return this machine, a recorded one, or the simulated one that is worked on, as `build` and `train` take it."""
    from rocmatrix.host import simulated
    from rocmatrix.jobs import interactive

    host = interactive.host_of(_root(args))
    return host if args.sysfs or simulated.root() is None else replace(host, hardware=hardware_here())


def _for_editor(args: Session, chosen: Chosen, choice: Choice, host: Host) -> tuple[Chosen, Host]:
    """Return what is chosen for a development container, and the host with the engine that an editor calls there.

    Rootless Docker takes its own user for root, so that is who works inside; podman keeps the user's number.
    """
    from rocmatrix.jobs import devcontainer as workplace

    command = chosen.command or tuple(workplace.smoke_argv(choice.cell, host.hardware, args.request))
    user, features = workplace.user_of(args.user or None), {*chosen.features} | workplace.FEATURES
    chosen = replace(chosen, command=command, user=user, features=features)
    rootless = None if args.sysfs else workplace.rootless_engine()
    if rootless == "docker":
        _require_own_user(args)
        chosen = replace(chosen, rootless=True)
    chosen = replace(chosen, device_rules=rootless is None)
    return chosen, replace(host, editor_engine="podman" if rootless == "podman" else "docker")


def _run_here(args: Run, run_folder: Path, choice: Choice, spec: RunSpec) -> None:
    from rocmatrix.cli.commands.build import built_image
    from rocmatrix.containers import engine
    from rocmatrix.containers.settings import CdiDevice, Device
    from rocmatrix.jobs import interactive

    if any(isinstance(each, Device | CdiDevice) for each in spec.settings):
        engine.require_cards()
    built = built_image(
        choice, base=args.base or None, wheelhouse=None, dry_run=False, allow_unlocked=args.allow_unlocked
    )
    spec = replace(spec, image=built.image.id) if built.image else spec
    run_folder.mkdir(parents=True, exist_ok=True)
    _published(spec)
    status = interactive.attached(interactive.attached_argv(spec), variables=args.variables)
    if (error := interactive.refused(status)) is not None:
        say(error.render())
    sys.exit(status)


def _print_run(args: Run, target: Target, spec: RunSpec, host: Host) -> None:
    from rocmatrix.jobs import interactive

    if args.explain:
        rows = (*(() if args.target else interactive.terminal_rows()), *target.rows(spec, host))
        if args.json:
            print_json({"target": args.target or "docker", "cell": spec.cell, "rows": [vars(row) for row in rows]})
        else:
            print_rows(rows)
        return
    for hint in target.hints(spec, host):
        say(hint)
    text = target.text(spec, host) if args.target else shlex.join(interactive.attached_argv(spec)) + "\n"
    if not args.to:
        print(text, end="")
        return
    _write(target, Path(args.to).resolve(), text)


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


def _write(target: Target, to: Path, text: str) -> None:
    target.require_free(to)
    with writing(to, flag="--to"):
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text, encoding="utf-8")
    say(f"wrote {to}")


@command(
    Devcontainer,
    about="Write .devcontainer/ for an editor: the cell's image as a development environment, with the card, as your "
    "own user.",
)
def devcontainer(args: Devcontainer) -> None:
    """Write .devcontainer/: the cell's image as a development environment, for this host and user."""
    from rocmatrix.jobs import devcontainer as workplace
    from rocmatrix.jobs import interactive

    chosen = args.chosen()
    host = _host(args)
    choice = choose(known_matrix(), args.request, host.hardware, force=args.force)
    chosen, host = _for_editor(args, chosen, choice, host)
    spec = interactive.spec_for(chosen, cell=choice.cell, hardware=host.hardware)
    folder = Path(args.to).resolve() if args.to else ROOT / workplace.FOLDER
    workplace.write(folder, workplace.files(spec, called=host.editor_engine))
    inside = ", root inside: the engine is rootless" if chosen.rootless else ""
    say(f"wrote {folder} for user {chosen.user}{inside}")
    unlocked = " --allow-unlocked" if choice.cell.unlocked_because else ""
    say(f"hint: ./invokew build --cell {choice.cell.name}{unlocked}")
    say("then open the checkout in an editor that knows dev containers")
    if host.editor_engine == "podman":
        say("for rootless podman: in the editor, set dev.containers.dockerPath to podman")
    elif shutil.which("docker") is None:
        say("there is no `docker` command on the PATH, which editors call")
