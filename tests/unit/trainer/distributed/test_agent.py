"""torchrun's agent ends with a status and words of one line where torchrun prints its own traceback."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from torch.distributed import run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from trainer.distributed import agent


def ended_by(monkeypatch: pytest.MonkeyPatch, error: BaseException | None) -> int:
    def main() -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(run, "main", main)
    return agent.main()


def failure(rank: int, exitcode: int) -> Any:
    return ProcessFailure(local_rank=rank, pid=4711, exitcode=exitcode, error_file="<N/A>")


def test_agent_without_trouble_ends_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended_by(monkeypatch, None) == 0


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SignalException("got it", signal.SIGTERM), 143),
        (SignalException("got it", signal.SIGHUP), 129),
        (SignalException("got it", signal.SIGINT), 130),
        (KeyboardInterrupt(), 130),
    ],
)
def test_signal_to_the_agent_is_a_status_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, status: int
) -> None:
    assert ended_by(monkeypatch, error) == status
    assert capsys.readouterr() == ("", "")


def test_failed_ranks_are_a_line_each(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failures = {1: failure(1, -signal.SIGKILL), 0: failure(0, 2), 2: failure(2, -40)}
    assert ended_by(monkeypatch, ChildFailedError("trainer", failures)) == 1
    assert capsys.readouterr().err.splitlines() == [
        "rank 0  ended with status 2",
        "rank 1  was ended by SIGKILL",
        "rank 2  was ended by signal 40",
    ]


def test_defect_of_torchrun_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="port"):
        ended_by(monkeypatch, OSError("no port"))
