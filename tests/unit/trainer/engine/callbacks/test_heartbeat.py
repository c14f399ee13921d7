"""The heartbeat notes the step that begins, before anything of it is computed."""

from types import SimpleNamespace

from trainer.engine.callbacks.heartbeat import Heartbeat


def test_step_that_begins_is_noted_with_its_number():
    noted = []
    run = SimpleNamespace(ranks=SimpleNamespace(at_step=noted.append), state=SimpleNamespace(step=7))
    Heartbeat().on_step_begin(run)
    assert noted == [7]


def test_heartbeat_is_on_all_ranks_and_takes_several_steps_at_once():
    assert Heartbeat.all_ranks
    assert Heartbeat.accepts_launches
    assert not Heartbeat.changes_results
