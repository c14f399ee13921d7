"""Checks of the doctor, and the registry that they enter where they are defined.

`@check` in front of a function makes it a check: `examination` runs it and `docs/doctor.md` lists it, in the order of
the codes. D1xx driver and nodes, D2xx cards and links, D3xx limits of the host, D4xx the engine, D5xx how the cards
are doing now. Codes are never reused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from rocmatrix.doctor.host import Host
    from rocmatrix.doctor.knowledge import HostKnowledge

Status = Literal["ok", "note", "warning", "error", "unknown", "not applicable"]
CheckFunction = TypeVar("CheckFunction", bound=Callable[..., "Finding | list[Finding]"])


@dataclass(frozen=True, kw_only=True)
class Check:
    """One question the doctor asks. `function` answers it from a host, and from matrix/hosts.yaml if it takes two."""

    code: str
    title: str
    why: str
    source: str
    function: Callable[..., Finding | list[Finding]]

    def findings(self, host: Host, known: HostKnowledge) -> list[Finding]:
        """Return what the check finds on a host."""
        given = (host, known)[: len(signature(self.function).parameters)]
        found = self.function(*given)
        return found if isinstance(found, list) else [found]


_REGISTER: dict[str, Check] = {}


def check(code: str, *, title: str, why: str, source: str) -> Callable[[CheckFunction], CheckFunction]:
    """Register a function as the check of a code. Raises ValueError for a code that is taken.

    Args:
        code: D and three digits; it keeps its meaning in all releases.
        title: clause that states the healthy condition, without a full stop.
        why: clause on what goes wrong where the condition does not hold.
        source: document, file of the kernel or module of this project that the check follows.
    """

    def register(function: CheckFunction) -> CheckFunction:
        if code in _REGISTER:
            raise ValueError(f"{code} is the code of {_REGISTER[code].function.__qualname__}")
        _REGISTER[code] = Check(code=code, title=title, why=why, source=source, function=function)
        return function

    return register


def registered() -> tuple[Check, ...]:
    """Return the checks of every module that was imported, in the order of their codes."""
    return tuple(_REGISTER[code] for code in sorted(_REGISTER))


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Result of one check. `fix` is the exact command, or the setting where no command reaches it."""

    code: str
    status: Status
    seen: str
    fix: str | None = None

    @property
    def check(self) -> Check:
        """The question behind it."""
        return _REGISTER[self.code]

    def described(self) -> dict[str, str | None]:
        """Return it as plain data."""
        entry = self.check
        row = {"code": self.code, "title": entry.title, "status": self.status, "seen": self.seen}
        return {**row, "why": entry.why, "fix": self.fix, "source": entry.source}
