"""D5xx: the cards' present state: power, temperature, throttling."""

from __future__ import annotations

from rocmatrix.doctor.catalog import Finding, Status, check
from rocmatrix.doctor.host import Host
from rocmatrix.host.gpu_metrics import counts, throttled_by
from rocmatrix.host.hardware import Card

NEAR_LIMIT = 5.0  # degrees Celsius
COOL = 20.0  # degrees Celsius below its limit; no firmware of a sound card slows it down for heat there
AUTOMATIC = ("auto", "high")
PROFILES_FOR_MEASURING = "profile_"


@check(
    "D501",
    title="No power profile holds the cards back",
    why="at level `low` clocks stay at the bottom, and `manual` keeps the clocks that were set by hand",
    source="Linux, Documentation/gpu/amdgpu/thermal.rst (power_dpm_force_performance_level)",
)
def power_level(host: Host) -> Finding:
    """Check that no power profile holds the clocks down (D501)."""
    levels = [(card, card.adapter.performance_level) for card in _plugged(host) if card.adapter]
    known = [(card, level) for card, level in levels if level]
    if not known:
        return _silent(host, "D501", "performance level not available")
    seen = ", ".join(
        f"card {card.index}: {level}{f' ({card.adapter.power_profile})' if card.adapter.power_profile else ''}"
        for card, level in known
        if card.adapter
    )
    held = [(card, level) for card, level in known if level not in AUTOMATIC]
    if not held:
        return Finding(code="D501", status="ok", seen=seen)
    low = any(level == "low" or level.startswith(PROFILES_FOR_MEASURING) for _, level in held)
    folder = held[0][0].adapter.folder if held[0][0].adapter else ""
    fix = f"echo auto | sudo tee /{folder}/power_dpm_force_performance_level"
    return Finding(code="D501", status="warning" if low else "note", seen=seen, fix=fix)


@check(
    "D502",
    title="The cards are cool",
    why="near the limit a card slows down, and past it the driver shuts it off",
    source="Linux, Documentation/gpu/amdgpu/thermal.rst (hwmon)",
)
def temperature(host: Host) -> Finding:
    """Check temperatures against the card's own limits (D502); a sensor without a limit is only shown."""
    readings = [(card, value) for card in _plugged(host) if card.adapter for value in card.adapter.temperatures]
    if not readings:
        return _silent(host, "D502", "temperature sensors not available")
    seen = ", ".join(
        f"card {card.index} {t.label} {t.degrees:.0f}{f' of {t.limit:.0f}' if t.limit else ''} °C"
        for card, t in readings
    )
    hot = [t for _, t in readings if t.limit and t.degrees >= t.limit - NEAR_LIMIT]
    if not hot:
        return Finding(code="D502", status="ok", seen=seen)
    status: Status = "error" if any(t.limit and t.degrees >= t.limit for t in hot) else "warning"
    fix = "stop the load, look at fans, dust and air flow; then lower power: amd-smi set --power-cap"
    return Finding(code="D502", status=status, seen=seen, fix=fix)


@check(
    "D503",
    title="Nothing throttles the cards now",
    why="a throttled card trains slower, and with several cards all wait for it",
    source="Linux, drivers/gpu/drm/amd/include/kgd_pp_interface.h (gpu_metrics)",
)
def throttling(host: Host) -> Finding:
    """Check that no card is throttled now (D503)."""
    tables = [(card, card.adapter.metrics) for card in _plugged(host) if card.adapter and card.adapter.metrics]
    if not tables:
        return _silent(host, "D503", "the driver shows no metrics")
    causes = [(card, throttled_by(table)) for card, table in tables if table]
    now = [(card, cause) for card, cause in causes if cause]
    if now:
        return _throttled(now)
    if None in (cause for _, cause in causes):
        return _unread([(card, table) for card, table in tables if table and throttled_by(table) is None])
    return Finding(code="D503", status="ok", seen=f"nothing on {len(causes)} card(s)")


def _throttled(now: list[tuple[Card, tuple[str, ...]]]) -> Finding:
    """Return what throttles cards. A status of heat on a card whose sensors are all cool is a note: it may be old."""
    hot = [card for card, cause in now if "temperature" in cause]
    cool = [card for card in hot if _is_cool(card)]
    seen = "; ".join(f"card {card.index}: {', '.join(cause)}" for card, cause in now)
    if cool:
        degrees = f"{COOL:.0f} °C and more below their limits"
        seen += (
            f"; the sensors of card {', '.join(str(card.index) for card in cool)} are {degrees}: look again under load"
        )
    fix = "temperature: cooling. Power or current: the card's limit is reached, which is normal under full load"
    return Finding(code="D503", status="warning" if len(hot) > len(cool) else "note", seen=seen, fix=fix)


def _is_cool(card: Card) -> bool:
    """Return whether every sensor that has a limit is far below it; False where none has one."""
    limited = [each for each in card.adapter.temperatures if each.limit] if card.adapter else []
    return bool(limited) and all(each.degrees <= (each.limit or 0) - COOL for each in limited)


def _unread(tables: list[tuple[Card, bytes]]) -> Finding:
    counting = [str(card.index) for card, table in tables if counts(table)]
    other = [str(card.index) for card, table in tables if not counts(table)]
    parts = [f"card {', '.join(counting)} counts throttled time, which takes two looks"] if counting else []
    parts += [f"the metrics of card {', '.join(other)} have a format that is not read here"] if other else []
    fix = "./invokew watch, during a run" if counting else None
    return Finding(code="D503", status="unknown", seen="; ".join(parts), fix=fix)


def _plugged(host: Host) -> list[Card]:
    """Return the first partition of each card: sensors and levels are the whole card's."""
    return [group[0] for group in host.hardware.physical_cards]


def _silent(host: Host, code: str, seen: str) -> Finding:
    if not host.hardware.cards:
        return Finding(code=code, status="not applicable", seen=host.no_card)
    return Finding(code=code, status="unknown", seen=seen)
