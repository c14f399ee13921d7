"""Shapes of known models have the weights that their cards state."""

import json

import pytest
import torch

from trainer.models.decoder.model import Decoder
from trainer.models.pretrained.families import decoder_config
from trainer.run.memory_plan.shapes import SHAPES, config_of, shape_named
from trainer.runtime.errors import TrainerError

WEIGHTS = {  # of the model cards; GPT-2's with nanoGPT's padded vocabulary
    "gpt2-124m": 124_475_904,
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "llama-3-8b": 8_030_261_248,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "mistral-7b": 7_248_023_552,
    "tinyllama-1.1b": 1_100_048_384,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "gemma-2b": 2_506_172_416,
    "gemma-7b": 8_537_680_896,
}


def test_shapes_have_the_weights_that_model_cards_state():
    with torch.device("meta"):
        counted = {
            name: sum(each.numel() for each in Decoder(decoder_config(raw)).parameters())
            for name, raw in SHAPES.items()
        }
    assert counted == WEIGHTS


@pytest.mark.parametrize(
    ("typed", "shape"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("Qwen2-1.5B", "qwen2.5-1.5b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3-8B", "llama-3-8b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-70b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"),
        ("google/gemma-2b-it", "gemma-2b"),
        ("HuggingFaceTB/SmolLM2-360M-Instruct", "smollm2-360m"),
        ("gpt2", "gpt2-124m"),
        ("google/gemma-2-2b-it", None),  # another family
        ("Qwen2.5-VL-7B-Instruct", None),
        ("deepseek-llm-7b", None),
    ],
)
def test_name_of_a_hub_is_read_as_the_shape_it_is_of(typed, shape):
    assert shape_named(typed) == shape


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
