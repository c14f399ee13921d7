"""Where a job runs follows from what is there; its events arrive one by one, its words pass through."""

import sys

import pytest

from rocmatrix import launch
from rocmatrix.errors import RocmatrixError


@pytest.mark.parametrize(
    ("asked", "cards", "obstacle", "where", "reason"),
    [
        ("auto", (), None, "native", "no AMD card"),
        ("auto", ("gfx1100",), None, "container", "gfx1100"),
        ("auto", ("gfx1100",), "the daemon is stopped", "native", "the daemon is stopped"),
        ("native", ("gfx1100",), None, "native", "--in native"),
        ("container", (), "the daemon is stopped", "container", "--in container"),
    ],
)
def test_the_place_has_a_reason(asked, cards, obstacle, where, reason):
    decision = launch.decide(asked, cards=cards, engine=obstacle)
    assert decision.where == where
    assert reason in decision.why


def test_another_word_is_refused():
    with pytest.raises(RocmatrixError, match="RM404"):
        launch.decide("docker", cards=(), engine=None)


def test_events_arrive_in_order_and_words_pass_through(capfd):
    code = 'print("{\\"event\\": \\"a\\"}"); print("words"); print("[1]"); print("{\\"event\\": \\"b\\", \\"n\\": 2}")'
    seen = []
    done = launch.run([sys.executable, "-c", code + "; raise SystemExit(7)"], show=seen.append)
    assert done.status == 7
    assert [event["event"] for event in seen] == ["a", "b"]
    assert done.last("b") == {"event": "b", "n": 2}
    assert done.last("c") is None
    assert "words" in capfd.readouterr().err


def test_the_checkout_comes_first_on_the_module_path(tmp_path):
    environment = launch.native_environment(tmp_path, {"PYTHONPATH": "/elsewhere", "HOME": "/h"})
    assert environment == {"PYTHONPATH": f"{tmp_path}:/elsewhere", "HOME": "/h"}
