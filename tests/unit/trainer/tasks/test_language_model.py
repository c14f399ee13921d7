"""Language models through the real loop, tiny: from scratch, tuned, resumed; the folders load in other programs."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.fixtures.next_commands import unknown_options
from tests.left_out import long
from trainer.cli import main
from trainer.config.train import TrainConfig
from trainer.data.tokens import corpus, load
from trainer.data.tokens.load import LanguageData
from trainer.data.tokens.tokenizer import ByteTokenizer
from trainer.models.pretrained.folder import read
from trainer.runtime.errors import TrainerError
from trainer.runtime.paths import SAMPLE
from trainer.tasks.choose import task_of
from trainer.tasks.language_model import LanguageTask, language_task, sum_of, total_weight
from trainer.tasks.task import Trained

pytestmark = pytest.mark.usefixtures("torch_as_before")
TINY = ["--task", "lm", "--sequence", "32", "--decoder-layers", "1", "--decoder-width", "32", "--device", "cpu"]
TEXT = "In the beginning was the word, and the word was short.\n" * 60
ROOT = Path(__file__).parents[4]


def train(folder, name, data, *more):
    return main([*["train", "--output"], str(folder), "--run", name, "--data", str(data), *TINY, *more])


def figures(folder):
    return json.loads((folder / "metadata.json").read_text())["metrics"]


def chat_rows(path, count=24):
    rows = [
        {"messages": [{"role": "user", "content": f"{n} + 1"}, {"role": "assistant", "content": f"{n + 1}."}]}
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


@pytest.fixture
def base(tmp_path, text):
    assert train(tmp_path, "base", text, "--max-steps", "3", "--batch-size", "4") == 0
    return tmp_path / "base"


def test_training_from_scratch_twice_gives_the_same_bytes_and_a_lower_loss(tmp_path, text):
    for name in "ab":
        assert train(tmp_path, name, text, "--max-steps", "8", "--batch-size", "4") == 0
    for name in ("model.safetensors", "config.json", "tokenizer.json", "generation_config.json", "recipe.yaml"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert figures(tmp_path / "a")["validation"]["loss"] < 5.5  # a uniform guess among 260 tokens: 5.56


def test_folder_of_a_run_in_transformers_gives_the_same_logits_and_ids(base):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(base, local_files_only=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(base, local_files_only=True)
    ids = tokenizer("In the beginning", return_tensors="pt").input_ids
    with torch.no_grad():
        assert torch.allclose(theirs(ids).logits, read(base).model(ids), atol=1e-5)
    assert tokenizer.decode(ids[0]) == "In the beginning"


def test_bits_per_byte_of_a_byte_tokenizer_is_the_loss_in_bits(base):
    validation = figures(base)["validation"]
    assert validation["bits_per_byte"] == pytest.approx(validation["loss"] / 0.6931471805599453, rel=1e-6)


def test_micro_batches_of_any_size_give_the_same_weights_within_rounding(tmp_path, text):
    for name, size in (("a", "4"), ("b", "3"), ("c", "1")):
        assert train(tmp_path, name, text, "--max-steps", "3", "--batch-size", "4", "--micro-batch", size) == 0
    first, *others = (load_file(tmp_path / name / "model.safetensors") for name in "abc")
    for other in others:
        assert all(torch.allclose(value, other[name], atol=2e-5) for name, value in first.items())


@pytest.mark.parametrize("adapter", ["lora", "qlora"])
def test_tuning_on_conversations_leaves_an_adapter_that_loads_in_peft(tmp_path, base, adapter):
    data = chat_rows(tmp_path / "chat.jsonl")
    options = ["--model", str(base), "--adapter", adapter, "--lora-rank", "2", "--max-steps", "6", "--sequence", "64"]
    for name in "ab":
        assert train(tmp_path, name, data, *options) == 0
    weights = "adapter_model.safetensors"
    assert (tmp_path / "a" / weights).read_bytes() == (tmp_path / "b" / weights).read_bytes()
    adapted = load_file(tmp_path / "a" / weights)
    assert any(value.abs().max() > 0 for name, value in adapted.items() if "lora_B" in name)
    record = json.loads((tmp_path / "a" / "metadata.json").read_text())
    assert record["language"]["method"] == "sft"
    assert record["language"]["chat_template"]["sha256"]
    assert not (tmp_path / "a" / "model.safetensors").exists()
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(base, local_files_only=True)
    peft.PeftModel.from_pretrained(model, tmp_path / "a")


def test_packed_and_single_rows_give_the_same_losses(tmp_path, base):
    """All rows in one step: then only what shares a sequence differs, and that must not matter."""
    data = chat_rows(tmp_path / "chat.jsonl", 8)
    options = ["--model", str(base), "--max-steps", "2", "--batch-size", "64", "--sequence", "128"]
    for name in ("true", "false"):
        assert train(tmp_path, name, data, *options, "--packing", name, "--validation-share", "0.2") == 0
    (one, other) = (figures(tmp_path / name) for name in ("true", "false"))
    assert one["best"]["train_loss"] == pytest.approx(other["best"]["train_loss"], rel=1e-5)
    assert one["validation"]["loss"] == pytest.approx(other["validation"]["loss"], rel=1e-4)


def test_preferences_lower_the_loss_below_that_of_the_reference(tmp_path, base):
    rows = [{"prompt": f"{n}?", "chosen": "yes, of course", "rejected": "no, never"} for n in range(16)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--model", str(base), "--adapter", "lora", "--max-steps", "12", "--learning-rate", "5e-3"]
    assert train(tmp_path, "dpo", tmp_path / "pairs.jsonl", *options, "--sequence", "64") == 0
    assert figures(tmp_path / "dpo")["validation"]["loss"] < 0.68  # ln 2 = 0.693 is the reference itself


def test_marked_answers_lower_the_loss_below_that_of_the_reference_whatever_the_cut(tmp_path, base):
    marked = [{"prompt": f"{n}?", "completion": ("no, never", "yes")[n % 2], "label": bool(n % 2)} for n in range(16)]
    (tmp_path / "marked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in marked))
    options = ["--model", str(base), "--adapter", "lora", "--max-steps", "10", "--learning-rate", "5e-3"]
    for name, size in (("kto", "2"), ("cut", "1")):
        more = ["--sequence", "64", "--batch-size", "2", "--micro-batch", size]
        assert train(tmp_path, name, tmp_path / "marked.jsonl", *options, *more) == 0
    found = figures(tmp_path / "kto")["validation"]["loss"]
    assert found < 0.45  # 0.5 is the reference itself
    assert figures(tmp_path / "cut")["validation"]["loss"] == pytest.approx(found, rel=1e-4)
    data = json.loads((tmp_path / "kto" / "metadata.json").read_text())["data"]
    assert (data["good"], data["bad"]) == (8, 8)


@pytest.mark.parametrize("method", ["dpo", "kto"])
def test_reference_computed_once_gives_the_bytes_of_one_of_each_step_also_after_a_resume(tmp_path, base, method):
    rows = [{"prompt": f"{n}?", "chosen": f"yes {n * n}", "rejected": "no"} for n in range(10)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "stopping.py").write_text(STOPPING.replace("== 7", "== 3"))
    options = ["--model", str(base), "--adapter", "lora", "--method", method, "--sequence", "64", "--batch-size", "2"]
    options += ["--max-steps", "6", "--learning-rate", "5e-3", "--checkpoint-every", "1"]
    assert train(tmp_path, "again", tmp_path / "pairs.jsonl", *options) == 0
    for name, more, status in (
        ("cached", [], 0),
        ("cut", ["--callback", f"{tmp_path / 'stopping.py'}:Stopping"], 2),
        ("cut", ["--resume", "cut"], 0),
    ):
        assert train(tmp_path, name, tmp_path / "pairs.jsonl", *options, "--reference", "cached", *more) == status
    weights = [(tmp_path / name / "adapter_model.safetensors").read_bytes() for name in ("again", "cached", "cut")]
    assert weights[0] == weights[1] == weights[2]


@pytest.mark.parametrize("adapter", ["lora", "qlora"])
def test_adapter_without_a_model_is_refused_before_training(tmp_path, text, capsys, adapter):
    assert train(tmp_path, "none", text, "--adapter", adapter, "--max-steps", "2") == 2
    assert "--model" in capsys.readouterr().err


def test_preferences_without_an_adapter_are_refused(tmp_path, base, capsys):
    (tmp_path / "pairs.jsonl").write_text('{"prompt": "a", "chosen": "b", "rejected": "c"}\n' * 3)
    assert train(tmp_path, "dpo", tmp_path / "pairs.jsonl", "--model", str(base), "--max-steps", "2") == 2
    assert "--adapter" in capsys.readouterr().err


def test_bad_row_ends_the_command_with_its_line(tmp_path, capsys):
    chat_rows(tmp_path / "chat.jsonl", 3)
    with (tmp_path / "chat.jsonl").open("a") as file:
        file.write('{"messages": [{"role": "user"\n')
    assert train(tmp_path, "bad", tmp_path / "chat.jsonl", "--max-steps", "2", "--sequence", "64") == 2
    error = capsys.readouterr().err
    assert "RM708" in error
    assert "chat.jsonl:4" in error
    dropping = ["--max-steps", "2", "--sequence", "64", "--bad-rows", "drop"]
    assert train(tmp_path, "dropped", tmp_path / "chat.jsonl", *dropping) == 0
    record = json.loads((tmp_path / "dropped" / "metadata.json").read_text())
    assert record["data"]["changed"] == {"RM708": 1}


@pytest.mark.parametrize(
    ("more", "code"),
    [(["--model", "nowhere"], "RM700"), (["--sequence", "4096"], "RM714"), (["--decoder-width", "33"], "RM500")],
)
def test_model_that_cannot_be_trained_ends_with_a_code(tmp_path, text, capsys, more, code):
    assert train(tmp_path, "x", text, "--max-steps", "2", *more) == 2
    assert code in capsys.readouterr().err


def bytes_of_killed_and_whole(folder, options, name):
    """Kill a run after some checkpoints, resume it, make the same undisturbed; return the file `name` of both."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    begun = subprocess.Popen(
        [sys.executable, "-m", "trainer", "train", *options, "--run", "killed"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not [path for path in folder.glob(".killed.partial/checkpoints/step-*") if int(path.name[5:]) > 4]:
        assert time.monotonic() < deadline
        assert begun.poll() is None
        time.sleep(0.02)
    begun.send_signal(signal.SIGKILL)
    begun.wait()
    assert not (folder / "killed").exists()
    with redirect_stdout(io.StringIO()) as printed:
        assert main(["train", *options, "--resume", "killed"]) == 0
    (resumed,) = [event for event in map(json.loads, printed.getvalue().splitlines()) if event["event"] == "resumed"]
    assert resumed["step"] >= 5 and not resumed["from_start"]
    assert main(["train", *options, "--run", "whole"]) == 0
    return (folder / "killed" / name).read_bytes(), (folder / "whole" / name).read_bytes()


def test_killed_run_resumed_ends_with_the_bytes_of_an_undisturbed_one(tmp_path, base):
    """With packing, an adapter and its dropout: order, moments and random numbers all have to come back."""
    data = chat_rows(tmp_path / "chat.jsonl", 40)
    options = [*TINY, "--model", str(base), "--adapter", "lora", "--lora-dropout", "0.1", "--sequence", "64"]
    options += ["--max-steps", "60", "--batch-size", "4", "--epochs", "99", "--checkpoint-every", "1"]
    options += ["--data", str(data), "--output", str(tmp_path)]
    killed, whole = bytes_of_killed_and_whole(tmp_path, options, "adapter_model.safetensors")
    assert killed == whole


@long
@pytest.mark.parametrize("optimizer", ["adamw8bit", "muon"])
def test_killed_run_of_another_optimizer_resumed_ends_with_the_same_bytes(tmp_path, text, optimizer):
    """Momentum that is made orthogonal, and moments in 8 bits with their scales, come back to the bit."""
    options = [*TINY, "--decoder-width", "64", "--optimizer", optimizer, "--data", str(text)]
    options += ["--max-steps", "60", "--batch-size", "4", "--epochs", "99", "--checkpoint-every", "1"]
    killed, whole = bytes_of_killed_and_whole(tmp_path, [*options, "--output", str(tmp_path)], "model.safetensors")
    assert killed == whole
    assert load_file(tmp_path / "whole" / "model.safetensors")  # weights, not an empty file


def test_run_on_a_cpu_records_plain_torch_and_the_reason(base):
    fast = json.loads((base / "metadata.json").read_text())["fast"]
    assert fast["blocks"]["name"] == "plain" and "CPU" in fast["blocks"]["why"]


def task_like(folder, *, method="sft", rows=(1, 2, 3), **settings):
    """A task over rows that are only counted."""
    config = TrainConfig.of(task="lm", data=folder / "a.jsonl", sequence=16, **settings)
    data = LanguageData(method=method, train=rows, validation=rows[:2], sha256="f" * 64, facts={})
    return LanguageTask(
        config=config.data, decoder=config.model, data=data, tokenizer=ByteTokenizer(), template=None, seed=1
    )


@pytest.mark.parametrize(
    ("loss", "perplexity"), [(0.0, 1.0), (2.0, math.exp(2)), (699.9, math.exp(699.9)), (700.0, math.inf)]
)
def test_perplexity_follows_from_the_mean_loss_until_it_overflows(tmp_path, loss, perplexity):
    found = task_like(tmp_path).figures(loss * 8, 8.0)
    assert found["loss"] == pytest.approx(loss)
    assert found["perplexity"] == pytest.approx(perplexity)
    assert (found["rows"], found["tokens"], "bits_per_byte" in found) == (2, 8.0, False)


def test_figures_of_pairs_and_of_no_labels_leave_perplexity_out(tmp_path):
    assert task_like(tmp_path, method="dpo").figures(3.0, 2.0) == {"rows": 2, "loss": 1.5}
    assert math.isnan(task_like(tmp_path).figures(0.0, 0.0)["loss"])


def test_preferences_without_an_adapter_have_no_reference(tmp_path):
    for method in ("dpo", "kto"):
        with pytest.raises(TrainerError, match="RM500") as caught:
            task_like(tmp_path, method=method).network()
        assert "--adapter" in str(caught.value.next)
    assert task_like(tmp_path, method="sft").network().description["adapter"] == "none"


def test_hash_of_the_data_follows_file_tokenizer_and_template(tmp_path):
    from dataclasses import replace

    from trainer.data.tokens.chat_template import CHATML, ChatTemplate

    task = task_like(tmp_path)
    other = replace(task, template=ChatTemplate(text=CHATML, source="a"))
    assert task.data_sha256 == task_like(tmp_path).data_sha256
    assert task.data_sha256 != other.data_sha256
    assert task.data_sha256 != replace(task, data=replace(task.data, sha256="e" * 64)).data_sha256


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        ({"loss": 1.0}, "validation 1.0000"),
        ({"loss": 1.0, "perplexity": 2.7183}, "validation 1.0000, perplexity 2.72"),
        (
            {"loss": 1.0, "perplexity": 2.7183, "bits_per_byte": 1.5},
            "validation 1.0000, perplexity 2.72, 1.500 bits per byte",
        ),
    ],
)
def test_summary_has_the_figures_that_there_are(tmp_path, figures, line):
    language = {"sequence": 16, "train_sequences": 1234, "validation_sequences": 2}
    record = {"metrics": {"validation": figures}, "language": language, "data": {"name": "a.jsonl"}}
    found = task_like(tmp_path).summary(record, Trained(rows=100, seconds=2.0, measurements=3))
    assert found["loss"] == line
    assert found["data"] == "a.jsonl, sft; sequences of 16: 1,234 train, 2 validation"
    assert found["speed"].startswith("800 tokens/s")


@pytest.mark.parametrize(
    ("method", "kind", "speed"), [("dpo", "pairs", "1,600"), ("kto", "groups of 4 answers", "3,200")]
)
def test_summary_of_preferences_counts_rows_and_tokens_by_what_they_are(tmp_path, method, kind, speed):
    language = {"sequence": 16, "train_sequences": 3, "validation_sequences": 2}
    record = {"metrics": {"validation": {"loss": 0.5}}, "language": language, "data": {"name": "a.jsonl"}}
    found = task_like(tmp_path, method=method).summary(record, Trained(rows=100, seconds=2.0, measurements=3))
    assert found["data"] == f"a.jsonl, {method}; {kind}: 3 train, 2 validation"
    assert found["speed"].startswith(f"{speed} tokens/s")


@pytest.mark.parametrize(
    ("method", "adapter", "tasks"),
    [
        ("pretrain", "none", ["generate", "train", "gguf"]),
        ("sft", "none", ["chat", "train", "gguf"]),
        ("dpo", "lora", ["chat", "evaluate", "merge"]),
    ],
)
def test_next_commands_are_tasks_with_options_that_exist(tmp_path, method, adapter, tasks):
    record = {"model": {"adapter": adapter}, "language": {"method": method}}
    commands = task_like(tmp_path).next_commands(record)
    assert [command.split()[1] for command in commands] == tasks
    assert unknown_options(commands) == set()


def test_sample_of_bars_is_no_text(tmp_path):
    config = TrainConfig.of(task="lm", data=SAMPLE)
    with pytest.raises(TrainerError, match="RM500") as caught:
        language_task(config.data, config.model, folder=tmp_path, loop=config.loop)
    assert "--task lm needs --data" in str(caught.value.what)


def test_model_sums_its_own_loss_and_targets_are_weights():
    outputs, targets = torch.tensor(3.0), torch.tensor([[1.0, 0.0], [0.5, 1.0]])
    assert sum_of(outputs, targets) is outputs
    assert total_weight(targets).item() == 2.5


def test_positions_are_needed_for_the_longest_document_and_not_for_a_sequence_of_several(tmp_path):
    rows = [{"prompt": f"{n}?", "completion": "yes" * (1 + (n == 3))} for n in range(9)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = task_of(TrainConfig.of(task="lm", data=tmp_path / "rows.jsonl", sequence=64))
    lengths = [len(f"{row['prompt']}{row['completion']}") + 1 for row in rows]
    assert task.longest == 64
    assert task.longest_document == max(lengths)


STOPPING = """
from trainer.engine.callbacks import Callback
class Stopping(Callback):
    def on_checkpoint(self, run, *, final):
        if run.state.step == 7:
            raise RuntimeError("stopped by the test")
"""


def test_run_on_mapped_shards_that_broke_off_resumes_to_the_bytes_of_an_undisturbed_one(tmp_path, text, monkeypatch):
    """The position in a corpus larger than memory is the number of a row, in whichever shard it is."""
    monkeypatch.setattr(load, "IN_MEMORY", 0)
    monkeypatch.setattr(corpus.build, "__kwdefaults__", {**corpus.build.__kwdefaults__, "shard_tokens": 100})
    (tmp_path / "stopping.py").write_text(STOPPING)
    often = ["--max-steps", "12", "--batch-size", "3", "--checkpoint-every", "1"]
    assert train(tmp_path, "whole", text, *often) == 0
    record = json.loads((tmp_path / "whole" / "metadata.json").read_text())
    assert record["data"]["shards"] > 3
    assert train(tmp_path, "cut", text, *often, "--callback", f"{tmp_path / 'stopping.py'}:Stopping") != 0
    assert train(tmp_path, "cut", text, *often, "--resume", "cut") == 0
    for name in ("model.safetensors", "batches.jsonl"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
