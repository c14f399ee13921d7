"""The command line of `./invokew`: invoke's own, except that wrong usage ends like every other mistake.

`invokew` runs this file as a script: the checkout is on the module path only once invoke has loaded tasks.py.
"""

from __future__ import annotations

import re
import sys

from invoke import __version__
from invoke.exceptions import ParseError
from invoke.program import Program


class TaskProgram(Program):
    """Invoke, with RM404 and the nearest names for a task or a flag that it does not know."""

    def parse_tasks(self) -> None:
        """Read tasks and their flags; end with 2 where one is not known."""
        try:
            super().parse_tasks()
        except ParseError as error:
            from rocmatrix.console import say

            say(self._explained(error))
            sys.exit(2)

    def _explained(self, error: ParseError) -> str:
        from rocmatrix.errors import RocmatrixError, suggestion

        context = error.context
        name = context.name if context else None
        unknown = re.search(r"No idea what '([^'=]+)", str(error))
        if unknown is None:
            what = re.sub(r"Flag <Argument: (\S+)> needed value.*", r"--\1 needs a value", str(error))
            return RocmatrixError("RM404", what=what, next=f"./invokew --help {name}").render()
        word = unknown[1]
        if word.startswith("-") and context and name:
            known, kind = [flag for flag in context.flags if flag.startswith("--")], f"flag of {name}"
        else:
            known, kind = list(self.collection.task_names), "task"
        return RocmatrixError("RM404", what=f"{word} is no {kind}", next=suggestion(word, known)).render()


program = TaskProgram(name="Invoke", binary="./invokew", binary_names=["invokew"], version=__version__)

if __name__ == "__main__":
    program.run()
