"""Shapes of known models have the weights that their cards state."""

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
