"""The command line of `./invokew`: invoke's own, except that wrong usage ends like every other mistake.

`invokew` runs this file as a script, so nothing of the checkout can be imported before its folder is on the path.
"""

from __future__ import annotations

import signal

INTERRUPTIBLE = __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler
if INTERRUPTIBLE:  # Ctrl-C while what follows is imported has no traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import errno
import io
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    from invoke import __version__
    from invoke.config import Config
    from invoke.exceptions import Exit, ParseError, UnknownFileType
    from invoke.parser.argument import Argument
    from invoke.parser.context import ParserContext
    from invoke.parser.parser import Parser, ParseResult
    from invoke.program import Program
    from invoke.terminals import pty_size
except ModuleNotFoundError as lost:  # as `rocmatrix.runtime.console` reports a package that is missed later
    own = Path(__file__).resolve().parents[2] / ".venv"
    print(f"RM402 The environment could not be made\n  what:  {lost}\n  where: {sys.prefix}", file=sys.stderr)
    print(f"  hint:  Delete {own}: the next call makes it anew. If that does not help,", file=sys.stderr)
    print("         `pip config list` shows what sends packages elsewhere.", file=sys.stderr)
    sys.exit(2)

LISTS = ("flat", "nested", "json")


class OwnConfig(Config):
    """Invoke's configuration. A file of it that cannot be opened, as below a HOME that is no folder, is none."""

    def _load_file(self, prefix: str, absolute: bool = False, merge: bool = True) -> None:
        try:
            super()._load_file(prefix=prefix, absolute=absolute, merge=merge)
        except (NotADirectoryError, PermissionError):
            if absolute:  # it was named
                raise
            self._set(f"_{prefix}_found", False)


class UnderscoreParser(Parser):
    """Invoke's parser, which takes a flag of a task with underscores for its dashes, too."""

    def parse_argv(self, argv: list[str]) -> ParseResult:
        """Read tasks and their flags; what stands after `--` is left as it is."""
        from rocmatrix.cli.options.command import dashed
        from rocmatrix.cli.options.synonyms import translated

        known = {flag for context in self.contexts.values() for flag in context.flags}
        end = argv.index("--") if "--" in argv else len(argv)
        if (name := self._explained_task(argv[:end])) and self.initial is not None:
            self.initial.flags["--help"].value = name
            return super().parse_argv([])
        own = translated([dashed(word, known) for word in argv[:end]], known)
        self._require_values(own)
        self._require_once(own)
        return super().parse_argv([*own, *argv[end:]])

    def _require_values(self, own: list[str]) -> None:
        """Raise ParseError for a flag with an empty value, as of `--data "$FILE"` where no FILE is set.

        Args:
            own: words in front of `--`.
        """
        context = self.initial
        for place, word in enumerate(own):
            context = self.contexts.get(word, context)
            flag, equals, value = word.partition("=")
            if context is None or not flag.startswith("--") or flag not in context.flags:
                continue
            empty = not value if equals else own[place + 1 : place + 2] == [""]
            if empty and context.flags[flag].takes_value:
                what = f"{flag} was given an empty value, as of a shell's variable that is not set"
                raise ParseError(f"{what}; leave the flag out for its default", context)

    def _require_once(self, own: list[str]) -> None:
        """Raise ParseError for a flag that has its value already: invoke would take the second one for a task.

        Args:
            own: words in front of `--`.
        """
        context, given, value_next = self.initial, set[str](), False
        for word in own:
            if value_next:
                value_next = False
                continue
            if word in self.contexts:
                context, given = self.contexts[word], set[str]()
            flag, equals, _ = word.partition("=")
            if context is None or flag not in context.flags or not context.flags[flag].takes_value:
                continue
            value_next = not equals and not context.flags[flag].optional
            name = context.flags[flag].name
            if name in given and context.flags[flag].kind is not list:
                raise ParseError(f"{flag} is given twice; give it once", context)
            given.add(name)

    def _explained_task(self, argv: list[str]) -> str:
        """Return the task in front of a --help, empty for none: invoke takes it for a task's argument without a flag.

        Args:
            argv: words in front of `--`.
        """
        place = next((place for place, word in enumerate(argv) if word in ("--help", "-h")), 0)
        return next((word for word in reversed(argv[:place]) if word in self.contexts), "")


class TaskProgram(Program):
    """Invoke, with RM404 and the nearest names for a task, a flag or a value that it does not know."""

    every_option = False  # whether help lists those, too, that few need

    def core_args(self) -> list[Argument]:
        """Return the program's own options; those that take a number are checked."""
        from rocmatrix.cli.options.number_option import checked

        return [checked(argument) for argument in super().core_args()]

    def parse_core(self, argv: list[str] | None) -> None:
        """Read the program's own options; end with 2 where one has a value that it does not take."""
        kept = sys.dont_write_bytecode or bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))  # -E hides the variable
        with self._explained(), self._written_out():
            super().parse_core(argv)
        sys.dont_write_bytecode = kept and not self.args["write-pyc"].value  # invoke compiles all anew in each call

    def parse_collection(self) -> None:
        """Load the tasks; end with 2 where --collection names none."""
        with self._explained():
            super().parse_collection()

    def parse_tasks(self) -> None:
        """Read tasks and their flags; end with 2 where one is not known, or has a value that it does not take."""
        with self._explained():
            super().parse_tasks()

    def _make_parser(self) -> Parser:
        contexts = self.collection.to_contexts(ignore_unknown_help=self.config.tasks.ignore_unknown_help)
        return UnderscoreParser(initial=self.initial_context, contexts=contexts)

    def parse_cleanup(self) -> None:
        """Print help or the list where asked for; end with 2 where there is none of what is named."""
        with self._explained():
            if (shape := self.args["list-format"].value) not in LISTS:
                raise ParseError(f"--list-format takes flat, nested or json, not {shape!r}")
            with self._written_out():
                super().parse_cleanup()

    @contextmanager
    def _written_out(self) -> Iterator[None]:
        """Write out what is printed; end with 2 where it has no room, which invoke would end with 0."""
        try:
            try:
                yield
            finally:
                sys.stdout.flush()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            from rocmatrix.runtime.console import discard, known, say

            say(known(error).render())
            discard(sys.stdout)
            sys.exit(2)

    def no_tasks_given(self) -> None:
        """Print the tasks in groups: a bare call asks what there is."""
        from rocmatrix.cli.options import groups

        summaries = {name: task.command.about for name, task in self.collection.tasks.items()}
        print(groups.text(summaries, width=pty_size()[0]), flush=True)
        raise Exit

    def update_config(self, merge: bool = True) -> None:
        """Apply the program's own options; end with 2 where --config names a file of no known kind."""
        with self._explained():
            super().update_config(merge)

    def normalize_argv(self, argv: list[str] | None) -> None:
        """Take `all` out of `TASK --help=all` and `TASK --help all`, which invoke would read as a task's name."""
        super().normalize_argv(argv)
        tasks = [place for place, word in enumerate(self.argv[1:], 1) if not word.startswith("-")]
        for place, word in enumerate(self.argv):
            if not tasks or place < tasks[0]:
                continue
            following = self.argv[place + 1 : place + 2]
            if word == "--help=all" or (word in ("--help", "-h") and following == ["all"]):
                self.every_option = True
                self.argv[place : place + 1 + (word != "--help=all")] = ["--help"]
                return

    def execute(self) -> None:
        """Run the tasks; advice on a failure names only what they take."""
        from rocmatrix.runtime import console

        console.offer(flag for context in self.tasks for flag in context.flags)
        super().execute()

    def print_task_help(self, name: str) -> None:
        """Print a task's help. Invoke leaves the texts what its longest option leaves them: a third of 80 columns."""
        from rocmatrix.cli.options import task_help
        from rocmatrix.runtime.console import edge

        command = self.collection[name].command
        text = task_help.page(command, program=self.binary, everything=self.every_option, width=pty_size()[0])
        edge(print)(text, flush=True)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:  # invoke would end with 1; a task that runs ends it itself
            print("\nStopped by Ctrl-C, before anything was begun.", file=sys.stderr)
            sys.exit(130)
        except (ParseError, Exit, UnknownFileType) as error:
            if isinstance(error, Exit) and not error.message:  # the end of --list, --help and --version
                raise
            from rocmatrix.runtime.console import say

            say(self._message(error))
            sys.exit(2)
        except BrokenPipeError:
            from rocmatrix.runtime.console import exit_on_broken_pipe

            exit_on_broken_pipe()

    def _message(self, error: Exception) -> str:
        from rocmatrix.cli.options import mistyped
        from rocmatrix.cli.options.synonyms import TRAINING, advice
        from rocmatrix.runtime.errors import RocmatrixError, suggestion

        context = getattr(error, "context", None)
        see = " ".join(["./invokew --help", *([context.name] if context and context.name else [])])
        unknown = re.search(r"No idea what '([^'=]+)", str(error))
        if unknown is None:
            what = re.sub(r"Flag <\w+: ([^\s>]+).* needed value.*", r"--\1 needs a value", str(error))
            if missing := re.fullmatch(r"'([\w-]+)' did not receive required positional arguments: (.*)", what):
                what = f"{missing[1]} needs {missing[2].replace(chr(39), '').upper()}"
            return RocmatrixError("RM404", what=what, next=see).render()
        word = unknown[1]
        if switch := self._switch_before(word, context):
            return RocmatrixError("RM404", what=f"{switch} takes no value, and was given {word!r}", next=see).render()
        if word.startswith("-") and context and context.name:
            known, kind = [flag for flag in context.flags if flag.startswith("--")], f"flag of {context.name}"
        else:
            known, kind = list(self.collection.task_names), "task"
        instead = mistyped.intended(word, self.argv[1:])
        instead = instead or (advice(word) if context and context.name in TRAINING else "")
        if word in ("--card", "--device") and "--gpu" in known:
            instead = "a card is named by --gpu"
        if word in ("--gpu", "--card", "--cell") and "--gpu" not in known:
            instead = f"./invokew explain {'--cell' if word == '--cell' else '--gpu'} NAME shows what there is for one"
        instead = instead or (mistyped.no_task(word, self.argv[1:]) if kind == "task" else mistyped.owners(word))
        if kind == "task" and (before := self._inner_command(word)):
            instead = f"The command of `run` stands after `--`: ./invokew {before} -- {word} …"
        return RocmatrixError("RM404", what=f"{word} is no {kind}", next=instead or suggestion(word, known)).render()

    def _inner_command(self, word: str) -> str:
        """Return what was typed before `word` where that is `run` with its options; empty for any other task."""
        typed = self.argv[1 : self.argv.index(word)] if word in self.argv else []
        tasks = [each for each in typed if each in self.collection.task_names]
        return shlex.join(typed[typed.index("run") :]) if tasks and tasks[-1] == "run" else ""

    def _switch_before(self, word: str, context: ParserContext | None) -> str | None:
        """Return the flag that was typed with `=word`, though it only switches something on."""
        from rocmatrix.cli.options.command import dashed

        for typed in self.argv:
            flag, equals, value = typed.partition("=")
            if equals and value == word and context and dashed(flag, context.flags) in context.flags:
                return flag
        return None


program = TaskProgram(
    name="Invoke", binary="./invokew", binary_names=["invokew"], version=__version__, config_class=OwnConfig
)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal of few characters shows the others as escapes
        sys.stdout.reconfigure(errors="backslashreplace")
    if INTERRUPTIBLE:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    program.run()
