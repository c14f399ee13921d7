"""The commands for trained language models."""

from __future__ import annotations

import json

from tests.fixtures.decoders import printed_events
from trainer.analysis.language import command
from trainer.cli import main


def test_commands_show_base_and_tuned_side_by_side(adapter, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("some text " * 5)
    command.evaluate(model=adapter, data=tmp_path / "text.txt")
    command.generate(model=adapter, prompt="Hi", max_new_tokens=8, temperature=0)
    command.chat(model=adapter, lines=["Hi\n", "\n", "And?\n"], max_new_tokens=8, temperature=0)
    events = printed_events(capsys)
    assert [event["model"] for event in events] == ["base", "tuned"] * 4
    assert events[0]["loss"] != events[1]["loss"]
    assert events[2]["text"] != events[3]["text"]


def test_command_line_merges_generates_and_names_an_unknown_flag(adapter, tmp_path, capsys):
    merged = tmp_path / "merged"
    assert main(["merge", "--model", str(adapter), "--output", str(merged)]) == 0
    assert main(["generate", "--model", str(merged), "--prompt", "Hi", "--most", "3", "--top-k", "1"]) == 0
    assert [event["event"] for event in printed_events(capsys)] == ["merged", "generated"]
    assert main(["evaluate", "--model", str(merged), "--data", "none.txt"]) == 2
    assert "RM717" in capsys.readouterr().err
    assert main(["chat", "--model", str(merged), "--temprature", "1"]) == 2
    assert "--temperature" in capsys.readouterr().err


def test_prompt_longer_than_the_model_is_made_for_is_stated_once(adapter, base, capsys):
    most = json.loads((base / "config.json").read_text())["max_position_embeddings"]
    command.generate(model=adapter, prompt="x" * (most + 1), max_new_tokens=1)
    command.chat(model=adapter, lines=["x" * most], max_new_tokens=1)
    command.generate(model=adapter, prompt="x" * most, max_new_tokens=1)
    assert capsys.readouterr().err.count(f"more than the {most:,} that the model is made for") == 2
