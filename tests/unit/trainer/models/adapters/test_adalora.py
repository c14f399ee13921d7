"""AdaLoRA by peft through the loop: peft's own losses and ranks, and an exact resume."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pytest
import torch

from tests.fixtures.decoders import RAWS, folder_of
from tests.fixtures.later import imported_later
from trainer.analysis.language.loading import load
from trainer.cli import main
from trainer.config.train import TrainConfig
from trainer.data.tokens.labels import IGNORED, PADDING
from trainer.models.adapters import by_peft
from trainer.models.adapters.adalora import RankBudget, penalty_of, scheduled
from trainer.models.adapters.lora import adapters_disabled
from trainer.models.pretrained import own_class
from trainer.models.pretrained.folder import read_config
from trainer.runtime.errors import TrainerError
from trainer.tasks.choose import task_of

peft = imported_later("peft", "peft is not installed")
transformers = imported_later("transformers", "transformers is not installed")
METHOD = {"peft_type": "ADALORA", "init_r": 4, "target_r": 2, "lora_alpha": 8, "target_modules": ["q_proj", "up_proj"]}
METHOD |= {"tinit": 2, "tfinal": 3, "deltaT": 2}
STEPS = 12
TOKENS = torch.arange(60, 72)[None]


@pytest.fixture
def base(tmp_path):
    return folder_of(tmp_path / "base", RAWS["qwen2"])


def ran(*words):
    with redirect_stdout(io.StringIO()) as out:
        code = main([str(word) for word in words])
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


def train(tmp_path, base, *more, name="a", method=METHOD, rows=None, steps=STEPS):
    rows = rows or [{"prompt": f"{n}?", "completion": "yes"} for n in range(9)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "method.json").write_text(json.dumps(method))
    flags = ["--model", base, "--adapter", "peft", "--peft-config", tmp_path / "method.json", "--learning-rate", "1e-2"]
    flags += ["--data", tmp_path / "rows.jsonl", "--sequence", "48", "--batch-size", "8", "--max-steps", steps]
    return ran("train", "--task", "lm", *flags, "--output", tmp_path, "--run", name, *more)


def losses_of(folder):
    lines = [json.loads(line) for line in (folder / "batches.jsonl").read_text().splitlines()]
    return [float(each) for line in lines for each in np.frombuffer(bytes.fromhex(line["losses"]), ">f4")]


def by_peft_alone(base, rows, seed=0):
    """Return losses and rank pattern of a plain loop with peft and transformers, its penalty included."""
    decoder = own_class.read(base, read_config(base), torch.float32)
    by_peft.wrapped(decoder, scheduled(METHOD, STEPS), seed=seed)  # the trainer's own first weights
    model = decoder.causal.train()
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], 1e-2, weight_decay=0.0)
    losses = []
    for step in range(1, STEPS + 1):
        loss = model(**rows).loss
        loss.backward()
        optimizer.step()
        model.base_model.update_and_allocate(step)
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return losses, model.peft_config["default"].rank_pattern


def rows_of(tmp_path, base):
    """Return the training rows of `train` in one batch, as transformers takes them."""
    adapter = {"model": base, "adapter": "peft", "peft_config": tmp_path / "method.json"}
    config = TrainConfig.of(task="lm", data=tmp_path / "rows.jsonl", sequence=48, max_steps=STEPS, **adapter)
    part = task_of(config).data.train
    inputs, _ = part.rows(torch.arange(len(part)), torch.device("cpu"))
    labels = torch.nn.functional.pad(inputs["labels"], (1, 0), value=IGNORED)[:, :-1]  # transformers shifts by itself
    mask = (inputs["documents"] != PADDING).long()
    return {"input_ids": inputs["tokens"], "labels": labels.where(labels != IGNORED, -100), "attention_mask": mask}


def test_losses_and_ranks_are_those_of_a_loop_with_peft_alone(tmp_path, base):
    assert train(tmp_path, base)[0] == 0
    losses, pattern = by_peft_alone(base, rows_of(tmp_path, base))
    assert losses_of(tmp_path / "a") == pytest.approx(losses, abs=1e-5)
    record = json.loads((tmp_path / "a" / "adapter_config.json").read_text())
    assert record["rank_pattern"] == {name.replace(".default", ""): kept for name, kept in pattern.items()}
    kept = [rank for ranks in record["rank_pattern"].values() for rank in ranks]
    assert (len(kept), sum(kept)) == (16, 8)  # four layers of four ranks, of which two remain on average
    assert record["total_step"] == STEPS


def test_folder_gives_the_logits_that_peft_gives_and_merges(tmp_path, base):
    assert train(tmp_path, base)[0] == 0
    before = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
    loaded = load(tmp_path / "a")
    with torch.no_grad():
        plain = before(TOKENS).logits
        theirs = peft.PeftModel.from_pretrained(before, tmp_path / "a").eval()(TOKENS).logits
        assert torch.allclose(loaded.made.model(TOKENS), theirs, atol=1e-6)
        with adapters_disabled(loaded.made.model):
            assert torch.allclose(loaded.made.model(TOKENS), plain, atol=1e-6)
    assert (theirs - plain).abs().max() > 1e-3
    code, events = ran("merge", "--model", tmp_path / "a", "--output", tmp_path / "merged")
    assert code == 0 and events[-1]["largest_difference"] < 1e-5


STOPPING = """
from trainer.engine.callbacks import Callback
class Stopping(Callback):
    def on_checkpoint(self, run, *, final):
        if run.state.step == {step}:
            raise RuntimeError("stopped by the test")
"""


@pytest.mark.parametrize("step", [3, 10])  # within the choice of ranks, and after its end
def test_run_that_broke_off_resumes_to_the_bytes_of_an_undisturbed_one(tmp_path, base, step):
    often = ("--checkpoint-every", "1", "--eval-every", "3", "--lora-dropout", "0")
    assert train(tmp_path, base, *often, name="whole")[0] == 0
    (tmp_path / "stopping.py").write_text(STOPPING.format(step=step))
    assert train(tmp_path, base, *often, "--callback", f"{tmp_path / 'stopping.py'}:Stopping", name="cut")[0] != 0
    code, events = train(tmp_path, base, *often, "--resume", "cut", name="cut")
    assert code == 0
    assert next(each for each in events if each["event"] == "resumed")["step"] >= step - 1
    for name in ("adapter_model.safetensors", "adapter_config.json", "batches.jsonl"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"total_step": 99}, "total_step = 99, and the run takes 12 steps"),
        ({"target_r": 4}, "no rank is given up"),
        ({"tinit": 6, "tfinal": 6}, "leave none of 12 steps"),
        ({"tinit": 0, "tfinal": 11}, "leave none of 12 steps"),
        ({"deltaT": 0}, "deltaT = 0 is no whole number of at least 1"),
        ({"beta1": 1.0}, "beta1 = 1.0"),
        ({"r": 16}, "init_r and target_r"),
        ({"rank_pattern": {"a": [True]}}, "training decides"),
    ],
)
def test_schedule_that_leaves_nothing_to_decide_is_refused(options, words):
    with pytest.raises(TrainerError) as caught:
        scheduled({**METHOD, **options}, STEPS)
    assert (caught.value.code, words in caught.value.what) == ("RM712", True), caught.value.what


def test_run_of_another_length_is_not_resumed(tmp_path, base, capsys):
    """Ranks are given up by the share of the run that is over: with another end earlier ones would be others."""
    often = ("--checkpoint-every", "1")
    (tmp_path / "stopping.py").write_text(STOPPING.format(step=4))
    assert train(tmp_path, base, *often, "--callback", f"{tmp_path / 'stopping.py'}:Stopping", name="cut")[0] != 0
    assert train(tmp_path, base, *often, "--resume", "cut", name="cut", steps=20)[0] == 2
    assert "RM593" in capsys.readouterr().err
    assert train(tmp_path, base, *often, "--resume", "cut", name="cut")[0] == 0


def test_kept_weights_of_an_earlier_step_are_saved_with_the_ranks_of_that_step(tmp_path, base):
    """A later choice of ranks would cut off ranks that the kept weights still use."""
    decoder = own_class.read(base, read_config(base), torch.float32)
    by_peft.wrapped(decoder, scheduled(METHOD, STEPS), seed=0)
    tuner, earlier = decoder.causal.base_model, {}
    for step in range(1, STEPS):
        decoder.causal(input_ids=TOKENS, labels=TOKENS).loss.backward()
        with torch.no_grad():
            for weight in (each for each in decoder.parameters() if each.grad is not None):
                weight.sub_(0.05 * weight.grad.sign())
        decoder.budget.allocate(tuner, step)
        decoder.zero_grad()
        if step == 4:
            earlier = {name: value.clone() for name, value in decoder.state_dict().items()}
    at_end = decoder.budget.pattern()
    decoder.load_state_dict(earlier)
    assert decoder.budget.pattern() != at_end
    with torch.no_grad():
        before = decoder.eval()(TOKENS)
    (tmp_path / "saved").mkdir()
    files = by_peft.files(decoder, tmp_path / "saved", base=str(base))
    assert {"adapter_config.json", "adapter_model.safetensors"} <= set(files)
    with torch.no_grad():
        assert torch.allclose(load(tmp_path / "saved").made.model(TOKENS), before, atol=1e-5)


def test_penalty_is_that_which_peft_adds_to_a_loss_of_transformers(base):
    decoder = own_class.read(base, read_config(base), torch.float32)
    by_peft.wrapped(decoder, scheduled(METHOD, STEPS), seed=0)
    assert isinstance(decoder.budget, RankBudget)
    with torch.no_grad():
        whole = decoder.causal(input_ids=TOKENS, labels=TOKENS).loss
        alone = decoder.base(input_ids=TOKENS, labels=TOKENS).loss
        assert penalty_of(decoder.causal.base_model).item() == pytest.approx((whole - alone).item(), abs=1e-5)
        assert penalty_of(decoder.causal.base_model) > 0.5


def test_preferences_are_learned_with_their_reference_at_the_base(tmp_path, base):
    rows = [{"prompt": f"{n}?", "chosen": "yes", "rejected": "no"} for n in range(9)]
    assert train(tmp_path, base, rows=rows)[0] == 0
    losses, record = losses_of(tmp_path / "a"), json.loads((tmp_path / "a" / "metadata.json").read_text())
    assert losses[0] > 0.6931472 + 0.5  # DPO's first loss, and the penalty
    assert record["metrics"]["validation"]["loss"] < 0.6931472  # without the penalty
