# ruff: noqa: E501 (one form a line)
"""Names of machines and people that a text gives away once, removed wherever it has them; keys by their last word.

A form finds `epyc-n07 kernel:`; the same name in a sentence has no form. What a form took out as a name is searched for
in the rest. A key is judged by its last word, so that `BatchHost`, `alloc_node` and `jobOwner` need no entry each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial

Form = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]
_PLACE = re.compile(r"<(?:host|name|user)>")
# a name that is a word of the language could be any word of a log: a digit or a line in it makes it a name
_NAME = re.compile(
    r"(?=[\w.-]*[\d-])(?!gfx|rocm|torch|cuda|hip|card\d|renderD|ubuntu|debian|\d)[A-Za-z][\w-]{3,62}(?<![-_])"
)
_LAST = r"(?:[hH]osts?|HOSTS?|[nN]odes?|NODES?|[nN]ode[lL]ist|[hH]ost[lL]ist|[oO]wner|OWNER|[lL]ogin|[uU]ser|USER|[uU]ser[nN]ame|Sid)"
_NO_NAME = r"(?![\d.,]+(?:[\s,;)]|$)|[Nn]one\b|null\b|N/A|true\b|false\b|all\b|any\b|localhost\b|auto\b|root\b|gfx\d|rocm\b|[A-Za-z]+\(|<|\(|\[|\{|\d)"
_BY_LAST_WORD = re.compile(
    rf"(?P<key>(?<![\w./-])(?:[A-Za-z]\w{{0,40}}[_:a-z])?{_LAST}(?:=|:[ \t]{{1,8}}(?=[\w.-]+[ \t]*$)))[\"']?(?P<value>{_NO_NAME}[A-Za-z][\w.-]{{1,253}})",
    re.MULTILINE,
)
# a machine as the argument of a command that reaches it
_REACHED = re.compile(
    r"(?P<key>(?:^|[$#;&|>] ?|\bsudo )(?:ssh|mosh|ping|telnet|nslookup|traceroute)(?:[ \t]+-\w+(?:[ \t]+\d+)?){0,6}[ \t]+)(?!-|localhost\b|<)(?P<value>[A-Za-z][\w.-]{2,253})(?=[ \t]*(?:$|['\"]))",
    re.MULTILINE,
)
_IN_POD = re.compile(
    r"(?P<key>\bkubectl[ \t]+(?:exec|logs|attach|cp|port-forward)(?:[ \t]+-{1,2}[\w-]+){0,6}[ \t]+)(?!-|<)(?P<value>[a-z0-9][\w.-]{2,253})"
)
FORMS: tuple[Form, ...] = tuple((form, r"\g<key><name>") for form in (_BY_LAST_WORD, _REACHED, _IN_POD))


class Learner:
    """Substitution by forms that remembers the names which they took out."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def apply(self, text: str, forms: Iterable[Form]) -> str:
        """Return a text after each form in turn.

        Args:
            text: text to clean.
            forms: expressions, each with what stands in the place of a match.
        """
        for form, instead in forms:
            text = form.sub(partial(self._replaced, instead=instead), text)
        return text

    def _replaced(self, found: re.Match[str], instead: str | Callable[[re.Match[str]], str]) -> str:
        made = instead(found) if callable(instead) else found.expand(instead)
        around = _PLACE.split(made)
        if len(around) == 2 and found[0].startswith(around[0]) and found[0].endswith(around[1]):
            taken = found[0][len(around[0]) : len(found[0]) - len(around[1])]
            name = taken.partition(".")[0]
            if _NAME.fullmatch(name):
                self.names.add(name)
        return made

    def without_names(self, text: str) -> str:
        """Return a text without the names that were taken out elsewhere in it."""
        for name in sorted(self.names, key=lambda each: (-len(each), each)):
            text = re.sub(rf"(?<![\w<-]){re.escape(name)}(?![\w>-])", "<name>", text)
        return text
