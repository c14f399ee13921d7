"""Shapes of known models have the weights that their cards state."""

import json

import pytest
import torch

from trainer.models.decoder.model import Decoder
from trainer.models.pretrained.families import decoder_config
from trainer.run.memory_plan.shapes import SHAPES, config_of
from trainer.runtime.errors import TrainerError

WEIGHTS = {  # of the model cards; GPT-2's with nanoGPT's padded vocabulary
    "gpt2-124m": 124_475_904,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.1-8b": 8_030_261_248,
    "mistral-7b": 7_248_023_552,
    "llama-2-13b": 13_015_864_320,
}


def test_shapes_have_the_weights_that_model_cards_state():
    with torch.device("meta"):
        counted = {
            name: sum(each.numel() for each in Decoder(decoder_config(raw)).parameters())
            for name, raw in SHAPES.items()
        }
    assert counted == WEIGHTS


def test_model_that_is_unknown_is_refused_with_the_nearest():
    with pytest.raises(TrainerError, match=r"RM736[\s\S]*qwen2.5-0.5b"):
        config_of("qwen2.5-0.5")


SPOILED = {
    "cut off": ('{"model_type": "llama", ', "RM707"),
    "a list": ("[]", "RM707"),
    "no family": ("{}", "RM701"),
    "other family": ('{"model_type": "t5"}', "RM701"),
    "no UTF-8": (b"\xff\xfe{}", "RM707"),
    **{
        f"{key} = {value!r}": (json.dumps({**SHAPES["qwen2.5-0.5b"], key: value}), "RM707")
        for key, value in {
            "vocab_size": 0,
            "hidden_size": -64,
            "intermediate_size": 10**15,
            "num_hidden_layers": 10**12,
            "num_attention_heads": "many",
            "num_key_value_heads": -2,
            "head_dim": 63,
            "rms_norm_eps": [],
            "rope_parameters": [1],
        }.items()
    },
    "without vocabulary": (
        json.dumps({key: value for key, value in SHAPES["llama-3.2-1b"].items() if key != "vocab_size"}),
        "RM707",
    ),
    "window of text": (json.dumps({**SHAPES["mistral-7b"], "sliding_window": "4096"}), "RM707"),
    "no layers": (json.dumps({**SHAPES["gpt2-124m"], "n_layer": 0}), "RM707"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_config_that_makes_no_network_is_refused(case, tmp_path):
    content, code = SPOILED[case]
    path = tmp_path / "config.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for given in (path, tmp_path):
        with pytest.raises(TrainerError) as caught:
            config_of(str(given))
        assert caught.value.code == code
