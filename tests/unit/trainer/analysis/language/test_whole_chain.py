"""The chain that people walk, on synthetic text and synthetic conversations: train, tune, measure, merge, converse."""

import io
import json

import jsonschema
import pytest

from trainer.cli import main
from trainer.storage.record_shape import read_as
from trainer.tasks.records.language_schema import LanguageMetadata
from trainer.tasks.records.schema import json_schema

pytestmark = pytest.mark.usefixtures("torch_as_before")
TINY = ["--sequence", "64", "--decoder-layers", "1", "--decoder-width", "32", "--device", "cpu", "--batch-size", "8"]
SYNTHETIC_TEXT = "The fox runs over the hill. The dog sleeps under the tree.\n" * 60
ANSWER = "Over the hill, over the hill!"


@pytest.fixture
def walked(tmp_path, capsys):
    text, chats = tmp_path / "synthetic.txt", tmp_path / "synthetic.jsonl"
    text.write_text(SYNTHETIC_TEXT)
    row = {"prompt": "Where? ", "completion": ANSWER}
    chats.write_text((json.dumps(row) + "\n") * 40)
    common = ["train", "--task", "lm", "--output", str(tmp_path), *TINY]
    assert main([*common, "--run", "base", "--data", str(text), "--max-steps", "15"]) == 0
    first = last_event(capsys)
    tune = ["--model", str(tmp_path / "base"), "--adapter", "lora", "--learning-rate", "0.01"]
    assert main([*common, "--run", "tuned", "--data", str(chats), "--max-steps", "15", *tune]) == 0
    return tmp_path, first, last_event(capsys)


def last_event(capsys):
    return events(capsys)[-1]


def events(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_commands_of_the_chain_use_the_output_of_the_one_before(walked, capsys, monkeypatch):
    folder, first, second = walked
    base, tuned, merged = (str(folder / name) for name in ("base", "tuned", "merged"))
    assert first["next"][0] == "./invokew generate --model {run} --prompt 'Once'"
    assert "./invokew merge --model {run} --output MERGED" in second["next"]
    (folder / "answers.txt").write_text(ANSWER)
    assert main(["evaluate", "--model", tuned, "--data", str(folder / "answers.txt")]) == 0
    before, after = events(capsys)
    assert (before["model"], after["model"]) == ("base", "tuned")
    assert after["loss"] < before["loss"] - 0.1
    assert main(["merge", "--model", tuned, "--output", merged]) == 0
    assert main(["evaluate", "--model", merged, "--data", str(folder / "answers.txt")]) == 0
    assert events(capsys)[-1]["loss"] == pytest.approx(after["loss"], abs=1e-4)
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\n\n"))
    assert main(["chat", "--model", merged, "--most", "4"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["event"] == "answer"
    assert captured.err.startswith("model:")
    for name in ("base", "tuned"):
        record = json.loads((folder / name / "metadata.json").read_text())
        jsonschema.validate(record, json_schema())
        assert read_as(LanguageMetadata, record, "").run == name
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**record, "language": {}}, json_schema())
    for job in (["predict", "--data", "x"], ["compress"]):
        assert main([job[0], "--model", base, *job[1:]]) == 2
        assert events(capsys)[-1]["code"] == "RM719"
    assert main(["report", tuned]) == 2
    assert events(capsys)[-1]["code"] == "RM719"


@pytest.mark.parametrize("command", [["generate", "--prompt", "a"], ["chat"], ["merge", "--output", "m"]])
def test_folder_of_another_kind_of_run_is_refused(command, tmp_path, capsys):
    record = {"scaler": {}, "data": {"name": "bars.csv"}}
    (tmp_path / "metadata.json").write_text(json.dumps(record))
    assert main([command[0], "--model", str(tmp_path), *command[1:]]) == 2
    assert events(capsys)[-1]["code"] == "RM720"
