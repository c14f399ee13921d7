"""The rotary embedding of config.json in its old form and its new one."""

from __future__ import annotations

import pytest

from trainer.models.pretrained.rope import rope_config
from trainer.runtime.errors import TrainerError

YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}


@pytest.mark.parametrize(
    ("given", "factor"),
    [
        ({"attention_factor": 0.5}, 0.5),
        ({}, 0.1 * 1.3862943611198906 + 1.0),
        ({"mscale": 2.0, "mscale_all_dim": 1.0}, (0.2 * 1.3862943611198906 + 1.0) / (0.1 * 1.3862943611198906 + 1.0)),
        ({"mscale": 2.0}, 0.1 * 1.3862943611198906 + 1.0),
        ({"factor": 1.0}, 1.0),
    ],
)
def test_scale_of_yarn_is_given_or_follows_from_its_factor(given, factor):
    found = rope_config({"rope_parameters": YARN | given})
    assert found.attention_factor == pytest.approx(factor)


def test_rope_is_read_in_its_old_form_and_by_the_lengths():
    old = rope_config({"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}})
    assert (old.theta, old.kind, old.factor, old.attention_factor) == (5e5, "linear", 2.0, 1.0)
    stretched = {"original_max_position_embeddings": 16, "max_position_embeddings": 64}
    assert rope_config({"rope_scaling": {"type": "yarn"}} | stretched).factor == 4.0
    assert rope_config({}).theta == 10000.0


def test_two_scalings_of_positions_that_differ_are_refused():
    newer = {"rope_type": "default", "rope_theta": 1e6}
    with pytest.raises(TrainerError) as caught:
        rope_config({"rope_parameters": newer, "rope_scaling": {"type": "yarn", "factor": 4.0}})
    assert (caught.value.code, "rope_scaling" in caught.value.what) == ("RM707", True)
    both = {"rope_parameters": {**newer, "rope_type": "linear", "factor": 2.0}, "rope_scaling": {"type": "linear"}}
    assert rope_config(both).factor == 2.0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rope_type": "linear"}, "'linear' has no factor"),
        ({"rope_type": "spiral"}, "'spiral' is not implemented"),
        ({"rope_type": "longrope"}, "'longrope' is not built in"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5 is not built in"),
        ({"rope_theta": 0}, "rope_theta = 0"),
    ],
)
def test_rope_that_cannot_be_computed_is_refused_by_name(given, words):
    with pytest.raises(TrainerError) as caught:
        rope_config({"rope_parameters": given})
    assert (caught.value.code, words in caught.value.what) == ("RM707", True)
