"""SIGTERM asks a run to end, or unwinds it; outside the block it means what it meant before."""

import importlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from trainer.runtime import signals
from trainer.runtime.signals import ends_on_sigterm, interrupt_once, stop_on_sigterm


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def test_signal_within_the_block_only_sets_the_flag():
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_sigterm() as stop:
        assert not stop.requested
        terminate()
        assert stop.requested
    assert signal.getsignal(signal.SIGTERM) == before


def test_closed_terminal_within_the_block_sets_the_flag():
    before = signal.getsignal(signal.SIGHUP)
    with stop_on_sigterm() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.requested
    assert signal.getsignal(signal.SIGHUP) == before


def test_closed_terminal_that_nohup_ignores_sets_no_flag():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_sigterm() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.requested
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signal_unwinds_the_block_with_status_143():
    before, undone = signal.getsignal(signal.SIGTERM), []
    with pytest.raises(SystemExit) as ended, ends_on_sigterm():
        try:
            terminate()
        finally:
            undone.append(True)
    assert (ended.value.code, undone, signal.getsignal(signal.SIGTERM)) == (143, [True], before)


@pytest.mark.parametrize("block", [stop_on_sigterm, ends_on_sigterm])
def test_other_thread_leaves_the_handler_alone(block):
    before, seen = signal.getsignal(signal.SIGTERM), []

    def work():
        with block():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_second_signal_does_not_break_off_what_the_first_began():
    before, undone = signal.signal(signal.SIGTERM, interrupt_once), []
    try:
        with pytest.raises(KeyboardInterrupt):
            try:
                terminate()
            finally:
                terminate()
                undone.append(True)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert undone == [True]


def test_second_signal_within_a_block_does_not_break_off_its_end():
    undone = []
    with pytest.raises(SystemExit), ends_on_sigterm():
        try:
            terminate()
        finally:
            terminate()
            undone.append(True)
    assert undone == [True]


def test_interrupt_within_an_import_arrives_after_it(tmp_path, monkeypatch):
    """A module may drop the exception, as torch's C++ does: the request would be lost."""
    (tmp_path / "dropping.py").write_text(
        "import os, signal\n"
        "try:\n    os.kill(os.getpid(), signal.SIGTERM)\n    sum(range(1000))\n"
        "except BaseException:\n    pass\n"
        "ended = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGALRM)}
    signal.signal(signal.SIGTERM, interrupt_once)
    try:
        with pytest.raises(KeyboardInterrupt):
            assert importlib.import_module("dropping").ended
            time.sleep(5)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture
def ended(monkeypatch):
    """Return the signals by which the process would have ended at once; each lets the import end instead."""
    found = []

    def leave(number):
        found.append(number)
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise SystemExit(number)

    before = {number: signal.signal(number, interrupt_once) for number in (signal.SIGTERM, signal.SIGALRM)}
    monkeypatch.setattr(signals, "leave_at_once", leave)
    monkeypatch.setattr(signals, "_deferred", signals._Deferral())
    yield found
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in before.items():
        signal.signal(number, handler)


def test_import_that_hangs_is_ended_after_a_bound(tmp_path, monkeypatch, ended):
    monkeypatch.setattr(signals, "LONGEST", 0.1)
    (tmp_path / "hanging.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(10)"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SystemExit):
        importlib.import_module("hanging")
    assert ended == [signal.SIGTERM]


def test_second_signal_within_an_import_ends_it_at_once(tmp_path, monkeypatch, ended):
    (tmp_path / "twice.py").write_text(
        "import os, signal\nfor _ in range(2):\n    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SystemExit):
        importlib.import_module("twice")
    assert ended == [signal.SIGTERM]


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        (KeyboardInterrupt(), 130),
        (KeyboardInterrupt("SIGTERM"), 143),
        (KeyboardInterrupt("SIGHUP"), 129),
        (signals.TerminatedError(143), 143),
        (ValueError("SIGTERM"), 130),
    ],
)
def test_status_of_a_stop_is_that_of_a_shell(stop, status):
    assert signals.status_of(stop, 130) == status


@pytest.fixture
def ctrl_c():
    """Send Ctrl-C to this process as the trainer answers it, for the first time."""
    before, signals._Seen.signal = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGALRM)], False
    signal.signal(signal.SIGINT, signals.interrupt)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signals.forget()
    for number, handler in zip((signal.SIGINT, signal.SIGALRM), before, strict=True):
        signal.signal(number, handler)


def wait_for_stop():
    end = time.monotonic() + 5
    while time.monotonic() < end:
        time.sleep(0.01)


def test_ctrl_c_while_polars_own_interrupt_unwinds_is_that_one(ctrl_c):
    cleaned = []
    with pytest.raises(KeyboardInterrupt, match="of polars"):
        try:
            raise KeyboardInterrupt("of polars")
        finally:
            ctrl_c()
            cleaned.append(True)
    assert cleaned
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        try:
            raise KeyboardInterrupt("of polars")
        finally:
            ctrl_c()  # a person's second one


def closing(ctrl_c):
    try:
        yield
    finally:
        ctrl_c()


def test_ctrl_c_while_a_generator_is_closed_comes_behind_it(ctrl_c, capsys):
    generator = closing(ctrl_c)
    next(generator)
    with pytest.raises(KeyboardInterrupt):
        del generator
        wait_for_stop()
    assert "ignored" not in capsys.readouterr().err


def test_ctrl_c_that_waits_is_dropped_where_another_has_ended_the_command(ctrl_c):
    generator = closing(ctrl_c)
    next(generator)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        del generator
        time.sleep(3 * signals.AGAIN)  # it looks, and finds that one handled
    signals._Seen.signal = False
    generator = closing(ctrl_c)
    next(generator)
    del generator
    signals.forget()
    time.sleep(2 * signals.AGAIN)


def test_signals_are_held_back_until_the_block_is_left_and_blocked_in_what_is_started_there(ctrl_c):
    done, blocked = [], "import signal; print(signal.SIGINT in signal.pthread_sigmask(0, []))"
    with pytest.raises(KeyboardInterrupt), signals.held_back():
        ctrl_c()
        done.append(subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=True).stdout)
    assert done == ["True\n"]
    assert signal.getsignal(signal.SIGINT) is signals.interrupt
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
