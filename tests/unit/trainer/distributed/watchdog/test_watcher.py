"""A watcher's report of ranks that hang or were ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainer.distributed.watchdog import watcher
from trainer.distributed.watchdog.card_events import CardEvent, CardEvents, parse
from trainer.distributed.watchdog.timeouts import Limits

RESET = "3 1 scheduler timeout\n4 1 scheduler timeout\n"


@pytest.mark.parametrize(("text", "reset"), [(RESET, True), ("2 7f:1\n", False)])
def test_report_of_a_hang_holds_the_events_and_names_a_reset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, reset: bool
) -> None:
    task = watcher.Watch(folder=tmp_path, ranks=(0,), limits=Limits(floor=1.0, ceiling=2.0))
    events = CardEvents(seen=list(parse(51, text)))
    watcher.report(task, {}, [], states={}, blamed=[], stacks={}, events=events)
    kept = json.loads((tmp_path / "hang.json").read_text())["card_events"]
    assert [event["kind"] for event in kept] == [event.kind for event in events.seen]
    assert ("The driver reset GPU 51" in capsys.readouterr().err) == reset


@pytest.mark.parametrize("seen", [[], [CardEvent(gpu_id=51, kind="reset begun", detail="1 job hang")]])
def test_reset_that_ends_the_ranks_before_any_is_late_is_reported(
    capsys: pytest.CaptureFixture[str], seen: list[CardEvent]
) -> None:
    watcher.report_resets(CardEvents(seen=seen))
    out = capsys.readouterr().out
    assert ("card_reset" in out) == bool(seen)
    assert not seen or "job hang" in json.loads(out)["what"]
