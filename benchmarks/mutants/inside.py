"""Let mutmut make the mutants in a copy of the checkout, run the tests on each, and write what became of it.

The tests are collected once; each mutant then runs in a fork that holds them, the fastest first, up to the first
failure. mutmut's own loop starts pytest anew for each mutant, which takes several times as long.

The stated rule for texts: the words of a message are not mutated. A literal with a blank in it is a phrase for a
person, and `what`, `where`, `why`, `next`, `hint`, `words` and `reason` are the parts of a message; dropping one, or
altering a phrase's letters, makes no mutant. Codes, names and keys have no blank and are mutated. The name of a codec
means the same in any letter case, and is left as it is.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import hypothesis
import libcst as cst
import pytest
from forked import Loop  # this file runs as a script: its folder is on the path
from mutmut import __main__ as mutmut
from mutmut.configuration import config
from mutmut.mutation import mutators
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir, setup_source_paths

EXAMPLES = 15
CODECS = ("utf-8", "ascii", "unicode_escape")
MESSAGE_PARTS = {"what", "where", "why", "next", "hint", "words", "reason", "encoding"}


def no_phrases(operator: Callable[[cst.BaseString], Iterable[cst.BaseString]]) -> Callable[..., Iterable[cst.CSTNode]]:
    """Return the operator on strings without phrases."""

    def strings(node: cst.BaseString) -> Iterable[cst.CSTNode]:
        if not (isinstance(node, cst.SimpleString) and (" " in node.value or node.value.strip("'\"") in CODECS)):
            yield from operator(node)

    return strings


def no_parts(operator: Callable[[cst.Call], Iterable[cst.Call]]) -> Callable[..., Iterable[cst.CSTNode]]:
    """Return the operator on arguments without the parts of a message."""

    def arguments(node: cst.Call) -> Iterable[cst.CSTNode]:
        parts = {id(arg.value) for arg in node.args if arg.keyword and arg.keyword.value in MESSAGE_PARTS}
        for mutant in operator(node):
            kept = {id(arg.value) for arg in mutant.args}
            if parts <= kept:
                yield mutant

    return arguments


def leave_messages() -> None:
    """Apply the rule to mutmut's operators."""
    changed: dict[Any, Callable[..., Any]] = {
        mutators.operator_string: no_phrases,
        mutators.operator_arg_removal: no_parts,
    }
    operators: list[Any] = mutators.mutation_operators  # type: ignore[assignment]
    operators[:] = [(kind, changed[make](make) if make in changed else make) for kind, make in operators]


def change_of(name: str, path: Path) -> list[str]:
    """Return the lines that a mutant removes and adds."""
    lines = get_diff_for_mutant(name, path=path).splitlines()
    return [f"{line[0]} {line[1:].strip()}" for line in lines if line[:1] in "+-" and line[:3] not in ("---", "+++")]


def few_examples() -> None:
    """Let hypothesis try at most EXAMPLES examples a test, and make none simpler: more of it kills few more."""
    make = hypothesis.settings.__init__

    def capped(self: hypothesis.settings, parent: hypothesis.settings | None = None, **given: Any) -> None:
        if "max_examples" in given:
            given["max_examples"] = min(given["max_examples"], EXAMPLES)
        make(self, parent, **given)

    hypothesis.settings.__init__ = capped  # type: ignore[method-assign]
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", max_examples=EXAMPLES, database=None, phases=phases)
    hypothesis.settings.load_profile("mutants")


def generate() -> None:
    """Write the mutated copy below mutants/, as `mutmut run` does before it runs."""
    set_mutant_under_test("mutant_generation")
    Path("mutants").mkdir()
    copy_src_dir()
    copy_also_copy_files()
    setup_source_paths()
    mutmut.create_mutants(1)
    set_mutant_under_test("")


def is_chosen(name: str, change: list[str], chosen: dict[str, Any]) -> bool:
    """Whether a mutant is one of those to try again: it survived, or its function was changed since."""
    return change in chosen["changes"] or any(f".{each}__mutmut" in name for each in chosen["functions"])


def main() -> None:
    """Mutate the one module named, and write its mutants to the file named.

    A third file holds the changes and the functions to try alone; what is not tried is `kept`.
    """
    module, result, *chosen = map(Path, sys.argv[1:])
    leave_messages()
    few_examples()
    generate()
    data = SourceFileMutationData(path=module)
    data.load()
    changes = {name: change_of(name, module) for name in data.exit_code_by_key}
    selected = json.loads(chosen[0].read_text()) if chosen else None
    tried = [name for name, change in changes.items() if selected is None or is_chosen(name, change, selected)]
    os.chdir("mutants")
    loop = Loop(tried)
    status = pytest.main(["-q", *config().pytest_add_cli_args, *config().pytest_add_cli_args_test_selection], [loop])
    if loop.broken or set(loop.outcome) != set(tried):
        sys.exit(f"pytest ended with {int(status)}; tests that fail without a mutant: {loop.broken}")
    found = [
        {"name": name, "status": loop.outcome.get(name, "kept"), "change": change} for name, change in changes.items()
    ]
    result.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
