"""Adapters of methods that are not built in, by peft itself, through the same loop and commands."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.fixtures.decoders import RAWS, folder_of
from tests.fixtures.later import imported_later
from trainer.analysis.language.loading import load
from trainer.cli import main
from trainer.models.adapters import by_peft
from trainer.models.adapters.lora import adapters_disabled
from trainer.models.language.model import LanguageModel
from trainer.models.pretrained import own_class
from trainer.models.pretrained.folder import read_config
from trainer.runtime.errors import TrainerError

peft = imported_later("peft", "peft is not installed")
transformers = imported_later("transformers", "transformers is not installed")
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
        ({"peft_type": "ADALORA", "init_r": 8, "target_r": 8}, "no rank is given up"),
        ({"peft_type": "NOPE"}, "NOPE"),
        ({"peft_type": "BOFT", "boft_block_size": 4, "target_modules": ["q_proj"]}, "from values of the weights"),
        ({"peft_type": "POLY", "r": 2, "target_modules": ["q_proj"]}, "a step of peft's POLY"),
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


def test_adapter_that_acts_from_some_tokens_on_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"peft_type": "LORA", "alora_invocation_tokens": [5]}))
    with pytest.raises(TrainerError, match="alora_invocation_tokens"):
        by_peft.read_config(path)


def test_adapter_of_the_head_is_trained_by_the_loss(base):
    """It is 0 at first, so that the logits alone do not show it; a loss by the head's own weight would pass it by."""
    decoder = own_class.read(base, read_config(base), torch.float32)
    by_peft.wrapped(decoder, {"peft_type": "LORA", "r": 2, "target_modules": ["q_proj", "lm_head"]}, seed=0)
    LanguageModel(decoder)(TOKENS[:, :-1], TOKENS[:, 1:]).backward()
    adapted = dict(decoder.named_parameters())
    gradient = next(value.grad for name, value in adapted.items() if "lm_head.lora_B" in name)
    assert gradient is not None and gradient.abs().max() > 0


def saved(tmp_path, base, **options):
    """Write an adapter as peft itself does, away from its first weights; return the logits that it gives."""
    made = peft.LoraConfig(task_type="CAUSAL_LM", r=2, **options)
    model = peft.get_peft_model(transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), made)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
        model.peft_config["default"].base_model_name_or_path = str(base)
        model.save_pretrained(tmp_path / "adapter")
        return model.eval()(TOKENS).logits


@pytest.mark.parametrize(
    "options",
    [
        {"target_modules": ["q_proj", "lm_head"]},
        {"target_modules": ["q_proj", "embed_tokens"]},
        {"target_modules": ["q_proj"], "bias": "lora_only"},
    ],
)
def test_adapter_of_embedding_head_or_biases_gives_its_logits_and_switched_off_those_of_the_base(
    tmp_path, base, options
):
    theirs = saved(tmp_path, base, **options)
    loaded = load(tmp_path / "adapter")
    with torch.no_grad():
        plain = own_class.read(base, read_config(base), torch.float32).eval()(TOKENS)
        assert torch.allclose(loaded.made.model(TOKENS), theirs, atol=1e-5)
        with adapters_disabled(loaded.made.model):
            assert torch.allclose(loaded.made.model(TOKENS), plain, atol=1e-5)
        assert torch.allclose(loaded.made.model(TOKENS), theirs, atol=1e-5)
    assert (theirs - plain).abs().max() > 1e-3


@pytest.mark.parametrize("target", ["lm_head", "embed_tokens"])
def test_merge_of_one_side_of_a_tied_embedding_leaves_the_other(tmp_path, base, target):
    assert RAWS["qwen2"]["tie_word_embeddings"]
    theirs = saved(tmp_path, base, target_modules=[target])
    code, _ = ran("merge", "--model", tmp_path / "adapter", "--output", tmp_path / "merged")
    assert code == 0
    merged = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32).eval()
    with torch.no_grad():
        assert torch.allclose(merged(TOKENS).logits, theirs, atol=1e-4)
        assert torch.allclose(load(tmp_path / "merged").made.model(TOKENS), theirs, atol=1e-4)


def test_trained_bias_is_left_out_where_the_adapter_is_switched_off(base):
    """Without it the reference of a preference loss would move along with the policy."""
    decoder = own_class.read(base, read_config(base), torch.float32).eval()
    with torch.no_grad():
        before = decoder(TOKENS)
        by_peft.wrapped(decoder, {**METHODS["dora"], "use_dora": False, "bias": "all"}, seed=0)
        for name, weight in decoder.named_parameters():
            weight.add_(0.5) if name.endswith("bias") else None
        assert (decoder(TOKENS) - before).abs().max() > 1e-3
        with adapters_disabled(decoder):
            assert torch.allclose(decoder(TOKENS), before, atol=1e-5)


@pytest.mark.parametrize("change", ["lacks", "no part of the model takes"])
def test_part_of_an_adapter_that_peft_would_pass_over_is_refused(tmp_path, base, change):
    saved(tmp_path, base, target_modules=["q_proj"], use_dora=True)
    path = tmp_path / "adapter" / "adapter_model.safetensors"
    weights = load_file(path)
    name = next(name for name in weights if "lora_B" in name)
    value = weights.pop(name) if change == "lacks" else weights[name]
    save_file(weights if change == "lacks" else {**weights, name.replace("layers.0", "layers.99"): value.clone()}, path)
    with pytest.raises(TrainerError, match=change) as caught:
        load(tmp_path / "adapter")
    assert caught.value.code == "RM713"


def test_adapter_without_safetensors_names_the_way_to_them(tmp_path, base):
    saved(tmp_path, base, target_modules=["q_proj"], use_dora=True)
    (tmp_path / "adapter" / "adapter_model.safetensors").rename(tmp_path / "adapter" / "adapter_model.bin")
    with pytest.raises(TrainerError, match="is missing") as caught:
        load(tmp_path / "adapter")
    assert "save_pretrained" in caught.value.next


def test_repeated_layers_are_refused(tmp_path):
    config = {"peft_type": "LORA", "r": 2, "layer_replication": [[0, 1], [0, 1]]}
    (tmp_path / "method.json").write_text(json.dumps(config))
    with pytest.raises(TrainerError, match="layer_replication"):
        by_peft.read_config(tmp_path / "method.json")


def test_file_of_an_adapter_does_not_depend_on_the_order_of_a_set(tmp_path, base):
    decoder = own_class.read(base, read_config(base), torch.float32)
    by_peft.wrapped(decoder, {**METHODS["dora"], "target_modules": ["v_proj", "k_proj", "q_proj", "o_proj"]}, seed=0)
    decoder.causal.peft_config["default"].target_modules = ["v_proj", "q_proj"]  # a set of one in this order
    (tmp_path / "saved").mkdir()
    content = json.loads(by_peft.files(decoder, tmp_path / "saved", base="b")["adapter_config.json"])
    assert content["target_modules"] == ["q_proj", "v_proj"]
