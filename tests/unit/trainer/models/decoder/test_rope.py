"""Rotary embeddings: scores depend on distances alone, and longer contexts stretch long waves."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.models.decoder.config import RopeConfig
from trainer.models.decoder.rope import frequencies, rotate, rotation

DIM = 16


def scores(offset, distance):
    """Return the product of a rotated query and key at places that are `distance` apart."""
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 1, 1, 1, DIM, generator=generator)
    inverse = frequencies(RopeConfig(), DIM)
    at = [rotation(inverse, torch.tensor([[place]]), 1.0) for place in (offset + distance, offset)]
    return (rotate(query, *at[0]) * rotate(key, *at[1])).sum()


@given(st.integers(0, 500), st.integers(0, 50))
def test_score_depends_on_the_distance_alone(offset, distance):
    assert scores(offset, distance) == pytest.approx(float(scores(0, distance)), abs=2e-3)


def test_rotation_keeps_lengths_and_leaves_the_first_place():
    states = torch.randn(1, 2, 3, DIM, generator=torch.Generator().manual_seed(0))
    turned = rotate(states, *rotation(frequencies(RopeConfig(), DIM), torch.arange(3)[None], 1.0))
    assert torch.allclose(turned.norm(dim=-1), states.norm(dim=-1), atol=1e-5)
    assert torch.equal(turned[:, :, 0], states[:, :, 0])
    assert not torch.allclose(turned[:, :, 1], states[:, :, 1])


def test_scale_multiplies_cosine_and_sine():
    inverse, places = frequencies(RopeConfig(), DIM), torch.tensor([[3]])
    plain, scaled = rotation(inverse, places, 1.0), rotation(inverse, places, 0.5)
    assert all(torch.equal(half, whole * 0.5) for half, whole in zip(scaled, plain, strict=True))


@pytest.mark.parametrize("kind", ["llama3", "yarn"])
def test_scaling_keeps_short_waves_and_stretches_long_ones_by_the_factor(kind):
    rope = RopeConfig(kind=kind, factor=8.0, theta=5e5, original_length=8192)
    plain, found = frequencies(RopeConfig(theta=5e5), 128), frequencies(rope, 128)
    ratio = plain / found
    assert ratio[0] == pytest.approx(1.0)
    assert ratio[-1] == pytest.approx(8.0, rel=1e-4)
    assert bool((ratio[1:] >= ratio[:-1] - 1e-4).all())


def test_linear_scaling_stretches_every_wave():
    assert torch.equal(frequencies(RopeConfig(kind="linear", factor=4.0), DIM), frequencies(RopeConfig(), DIM) / 4)


def test_scaling_that_is_not_implemented_is_refused():
    with pytest.raises(ValueError, match="'longrope' is not implemented"):
        frequencies(RopeConfig(kind="longrope"), DIM)
