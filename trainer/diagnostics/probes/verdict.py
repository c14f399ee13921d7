"""Verdict of a probe: checks, numbers and a status, as one frozen value and one JSON line.

The types keep the promise that a verdict fails closed: a `pass` without a passing check, or with a
failing one, cannot be constructed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

CheckStatus = Literal["pass", "fail", "not-applicable"]
Status = Literal["pass", "fail", "not-applicable", "no-device", "timeout", "crash"]
Kind = Literal["cpu", "cuda", "rocm"]

Measured = float | str | None


class MalformedVerdictError(ValueError):
    """A line that is marked as a verdict and is not valid; the message states what is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One comparison of something measured with its limit, both in `unit`."""

    name: str
    status: CheckStatus
    measured: Measured = None
    limit: Measured = None
    unit: str = ""
    detail: str = ""

    def __post_init__(self) -> None:
        if self.status not in get_args(CheckStatus):
            raise MalformedVerdictError(f"check {self.name!r} has the unknown status {self.status!r}")


@dataclass(frozen=True, kw_only=True)
class Number:
    """One figure worth keeping over time. It carries no judgement."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True, kw_only=True)
class Device:
    """Device of a probe: `arch` is a gfx name on ROCm, `sm_NN` on CUDA, the machine type on a CPU."""

    kind: Kind
    name: str
    arch: str

    @property
    def torch_type(self) -> Literal["cpu", "cuda"]:
        """The name torch gives this kind: a ROCm build answers to `cuda` too."""
        return "cpu" if self.kind == "cpu" else "cuda"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of one probe. `diagnosis` names what a failure was traced to; it never changes `status`.

    `cards` are those that took part and `present` all that were there, where the subject takes two.

    Raises:
        MalformedVerdictError: on an unknown status, on a `pass` that its checks do not support, and on a
            `not-applicable` that has no reason or that checked something all the same.
    """

    probe: str
    status: Status
    summary: str
    checks: tuple[Check, ...] = ()
    numbers: tuple[Number, ...] = ()
    device: Device | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    diagnosis: Mapping[str, str] = field(default_factory=dict)
    cards: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    seconds: float = 0.0
    stderr_tail: str = ""

    def __post_init__(self) -> None:
        if self.status not in get_args(Status):
            raise MalformedVerdictError(f"probe {self.probe!r} has the unknown status {self.status!r}")
        if self.status == "pass" and judge(self.checks) != "pass":
            raise MalformedVerdictError(f"probe {self.probe!r} claims to pass, and its checks do not bear it out")
        checked = any(check.status != "not-applicable" for check in self.checks)
        if self.status == "not-applicable" and (checked or not self.summary):
            why = "gives no reason" if not checked else "checked it all the same"
            raise MalformedVerdictError(f"probe {self.probe!r} states that its subject is absent, and {why}")

    def to_json(self) -> str:
        """Return the verdict as one line of strict JSON: NaN and infinities become null."""
        record = {"event": "probe", **asdict(self)}
        return json.dumps(_finite(record), allow_nan=False)


def at_most(name: str, measured: float, limit: float, unit: str, detail: str = "") -> Check:
    """Return a check that passes when `measured <= limit`. NaN fails.

    Args:
        name: what is checked, as the verdict lists it, such as "flash fp16 causal".
        measured: measured value in `unit`.
        limit: largest accepted value in `unit`.
        unit: unit of both; empty for none.
        detail: further text; empty for none.
    """
    status: CheckStatus = "pass" if measured <= limit else "fail"
    return Check(name=name, status=status, measured=measured, limit=limit, unit=unit, detail=detail)


def at_least(name: str, measured: float, limit: float, unit: str, detail: str = "") -> Check:
    """Return a check that passes when `measured >= limit`. NaN fails.

    Args:
        name: what is checked, as the verdict lists it, such as "flash fp16 causal".
        measured: measured value in `unit`.
        limit: least accepted value in `unit`.
        unit: unit of both; empty for none.
        detail: further text; empty for none.
    """
    status: CheckStatus = "pass" if measured >= limit else "fail"
    return Check(name=name, status=status, measured=measured, limit=limit, unit=unit, detail=detail)


def equal(name: str, measured: float | str, limit: float | str, unit: str = "", detail: str = "") -> Check:
    """Return a check that passes when `measured` is exactly `limit`.

    Args:
        name: what is checked, as the verdict lists it, such as "flash fp16 causal".
        measured: measured value in `unit`.
        limit: the only accepted value.
        unit: unit of both; empty for none.
        detail: further text; empty for none.
    """
    status: CheckStatus = "pass" if measured == limit else "fail"
    return Check(name=name, status=status, measured=measured, limit=limit, unit=unit, detail=detail)


def not_applicable(name: str, reason: str) -> Check:
    """Return a check that could not be made here, and why. It counts neither way."""
    return Check(name=name, status="not-applicable", detail=reason)


def absent(
    *, probe: str, reason: str, device: Device | None = None, versions: Mapping[str, str] | None = None
) -> Verdict:
    """Return the verdict of a probe whose subject is not here: no second card, no compiler. `reason` is a sentence.

    Args:
        probe: name in its registry, such as "blas"; the verdict carries it.
        reason: one sentence.
        versions: versions of the libraries by name.
    """
    return Verdict(probe=probe, status="not-applicable", summary=reason, device=device, versions=dict(versions or {}))


def judge(checks: Sequence[Check]) -> Literal["pass", "fail"]:
    """Return `pass` only when at least one check passed and none failed."""
    statuses = {check.status for check in checks}
    return "pass" if "pass" in statuses and "fail" not in statuses else "fail"


def conclude(
    *,
    probe: str,
    summary: str,
    checks: Sequence[Check],
    numbers: Sequence[Number] = (),
    device: Device | None = None,
    versions: Mapping[str, str] | None = None,
) -> Verdict:
    """Return the verdict of `checks`; `summary` is kept for a pass and replaced by what failed otherwise.

    Args:
        probe: name in its registry, such as "blas"; the verdict carries it.
        summary: one sentence, used for a pass.
        checks: all checks of the probe.
        numbers: figures for the record.
        versions: versions of the libraries by name.
    """
    status = judge(checks)
    return Verdict(
        probe=probe,
        status=status,
        summary=summary if status == "pass" else explain_failure(checks),
        checks=tuple(checks),
        numbers=tuple(numbers),
        device=device,
        versions=dict(versions or {}),
    )


def explain_failure(checks: Sequence[Check]) -> str:
    """Return one sentence that names the failed checks, or states that nothing was checked."""
    failed = [check for check in checks if check.status == "fail"]
    if not failed:
        return "Nothing was checked, which counts as a failure."
    names = ", ".join(check.name for check in failed[:3]) + (", …" if len(failed) > 3 else "")
    detail = f" ({failed[0].detail})" if failed[0].detail else ""
    return f"{len(failed)} of {len(checks)} checks failed: {names}{detail}."


def parse(line: str) -> Verdict:
    """Read a verdict from its JSON line.

    Raises:
        MalformedVerdictError: when the line is not JSON, has a missing or unknown key, or contradicts itself.
    """
    try:
        record = json.loads(line)
        if not isinstance(record, dict) or record.pop("event", None) != "probe":
            raise MalformedVerdictError("the line is not a probe's verdict")
        return Verdict(**_typed(record))
    except MalformedVerdictError:
        raise
    except (ValueError, TypeError, KeyError) as error:
        raise MalformedVerdictError(f"the line cannot be read as a verdict: {error}") from error


def _typed(record: dict[str, Any]) -> dict[str, Any]:
    return record | {
        "checks": tuple(Check(**check) for check in record["checks"]),
        "numbers": tuple(Number(**number) for number in record["numbers"]),
        "cards": tuple(record.get("cards", ())),
        "present": tuple(record.get("present", ())),
        "device": Device(**record["device"]) if record["device"] else None,
    }


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
