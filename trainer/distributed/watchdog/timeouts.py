"""Time limit of a section: learned from the run, between a floor and a ceiling."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.distributed.watchdog.heartbeat import Beat

LEARNED_AFTER = 8  # passes; the first ones compile, tune kernels and fill caches
PATIENCE = 10.0  # times the longest stay that ended well
UNBOUNDED = ("end",)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds that a rank may stay in one section.

    Before a section has passed `LEARNED_AFTER` times, and always for `start`, `ceiling` holds. Afterwards it is
    `PATIENCE` times the longest stay so far, at least `floor`. Sections that wait for others (`comms`) are given
    what the slowest section of their rank may take besides, so that the rank that stopped is the first to be late.
    """

    floor: float
    ceiling: float

    def of(self, beat: Beat, section: str) -> float | None:
        """Return the limit in seconds of `section` for the rank with this heartbeat, None for no limit."""
        if section in UNBOUNDED:
            return None
        own = self._learned(beat, section)
        if section != "comms" or own is None:
            return self.ceiling if own is None else own
        others = [self._learned(beat, name) or 0.0 for name in beat.passes if name not in ("start", "comms")]
        return min(self.ceiling, own + max(others, default=0.0))

    def _learned(self, beat: Beat, section: str) -> float | None:
        if section == "start" or beat.passes[section] < LEARNED_AFTER:
            return None
        return min(self.ceiling, max(self.floor, PATIENCE * beat.longest[section]))
