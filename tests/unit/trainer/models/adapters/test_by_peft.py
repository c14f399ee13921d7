"""Adapters of methods that are not built in, by peft itself, through the same loop and commands."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

import pytest
import torch

from tests.fixtures.decoders import RAWS, folder_of
from trainer.analysis.language.loading import load
from trainer.cli import main
from trainer.models.adapters import by_peft
from trainer.models.adapters.lora import adapters_disabled
from trainer.models.pretrained import own_class
from trainer.models.pretrained.folder import read_config
from trainer.runtime.errors import TrainerError

peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
METHODS = {
    "dora": {"peft_type": "LORA", "use_dora": True, "r": 2, "lora_alpha": 4, "target_modules": "all-linear"},
    "prompt": {"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 5},
}
TOKENS = torch.arange(60, 72)[None]


@pytest.fixture
def base(tmp_path):
    return folder_of(tmp_path / "base", RAWS["qwen2"])


def ran(*words):
    with redirect_stdout(io.StringIO()) as out:
        code = main([str(word) for word in words])
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


def tuned(tmp_path, base, method, rows):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "method.json").write_text(json.dumps(METHODS[method]))
    flags = ["--model", base, "--adapter", "peft", "--peft-config", tmp_path / "method.json", "--learning-rate", "1e-2"]
    flags += ["--data", tmp_path / "rows.jsonl", "--sequence", "48", "--batch-size", "4", "--max-steps", "6"]
    return ran("train", "--task", "lm", *flags, "--output", tmp_path, "--run", "tuned")[0]


@pytest.mark.parametrize("method", METHODS)
def test_method_of_peft_is_trained_and_its_folder_gives_the_logits_that_peft_gives(tmp_path, base, method):
    assert tuned(tmp_path, base, method, [{"prompt": f"{n}?", "completion": "yes"} for n in range(12)]) == 0
    before = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
    with torch.no_grad():
        plain = before(TOKENS).logits
        theirs = peft.PeftModel.from_pretrained(before, tmp_path / "tuned").eval()(TOKENS).logits[:, -12:]
        loaded = load(tmp_path / "tuned")
        ours = loaded.made.model(TOKENS)
        with adapters_disabled(loaded.made.model):
            assert torch.allclose(loaded.made.model(TOKENS), plain, atol=1e-6)
    assert torch.allclose(ours, theirs, atol=1e-6)
    assert (ours - plain).abs().max() > 1e-3
    assert loaded.made.model.plain_head is (method == "dora")
    merged = ran("merge", "--model", tmp_path / "tuned", "--output", tmp_path / "merged")
    assert merged[0] == (0 if method == "dora" else 2)
    if method == "dora":
        assert merged[1][-1]["largest_difference"] < 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_method_of_peft_learns_preferences_against_itself_switched_off(tmp_path, base, method):
    rows = [{"prompt": f"{n}?", "chosen": "yes", "rejected": "no"} for n in range(12)]
    assert tuned(tmp_path, base, method, rows) == 0
    record = json.loads((tmp_path / "tuned" / "metadata.json").read_text())
    assert record["metrics"]["validation"]["loss"] != pytest.approx(0.6931472, abs=1e-6)
    assert record["model"]["peft"] == METHODS[method]


def test_first_weights_of_dora_are_those_of_the_base(base):
    """A magnitude that was taken from other weights would change the model before any step."""
    decoder = own_class.read(base, read_config(base), torch.float32)
    with torch.no_grad():
        before = decoder(TOKENS)
        by_peft.wrapped(decoder, METHODS["dora"], seed=0)
        assert torch.allclose(decoder(TOKENS), before, atol=1e-5)
    twin = own_class.read(base, read_config(base), torch.float32)
    by_peft.wrapped(twin, METHODS["dora"], seed=0)
    trained = {name: value for name, value in decoder.named_parameters() if value.requires_grad}
    assert trained and all(torch.equal(value, dict(twin.named_parameters())[name]) for name, value in trained.items())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"peft_type": "ADALORA"}, "no checkpoint has"),
        ({"peft_type": "NOPE"}, "NOPE"),
        ({"peft_type": "LORA", "rank": 4}, "rank"),
        ({"r": 4}, "peft_type"),
        ([], "peft_type"),
    ],
)
def test_configuration_that_peft_does_not_take_is_refused_before_training(tmp_path, base, content, words, capsys):
    (tmp_path / "a.txt").write_text("a text " * 99)
    (tmp_path / "method.json").write_text(json.dumps(content))
    flags = ["--model", base, "--adapter", "peft", "--peft-config", tmp_path / "method.json"]
    assert ran("train", "--task", "lm", *flags, "--data", tmp_path / "a.txt", "--output", tmp_path)[0] == 2
    shown = capsys.readouterr().err
    assert "RM712" in shown and words in shown


def test_adapter_by_peft_without_a_configuration_names_one(tmp_path, base, capsys):
    (tmp_path / "a.txt").write_text("a text " * 99)
    flags = ["--model", base, "--adapter", "peft", "--data", tmp_path / "a.txt", "--output", tmp_path]
    assert ran("train", "--task", "lm", *flags)[0] == 2
    assert "use_dora" in capsys.readouterr().err


def test_folder_of_lora_is_read_by_the_trainer_itself(tmp_path):
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2}))
    assert not by_peft.is_by_peft(tmp_path)
    (tmp_path / "adapter_config.json").write_text(json.dumps(METHODS["dora"]))
    assert by_peft.is_by_peft(tmp_path)
    with pytest.raises(TrainerError, match="RM712"):
        by_peft.read_config(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"peft_type": "LORA", "of_next_year": True}, "no such option"),
        ({"peft_type": "NONESUCH"}, "no peft_type"),
    ],
)
def test_option_that_peft_would_pass_over_is_refused(config, words):
    pytest.importorskip("peft")
    with pytest.raises(TrainerError) as caught:
        by_peft.wrapped(None, config, seed=0)
    assert (caught.value.code, words in caught.value.what) == ("RM712", True), caught.value.what


def test_first_weights_that_change_the_base_are_not_trained_on(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"peft_type": "lora", "init_lora_weights": "pissa"}))
    with pytest.raises(TrainerError, match="changes the base"):
        by_peft.read_config(path)
