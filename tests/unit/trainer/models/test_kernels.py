"""A kernel of attention is used alone, or the call fails."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as attention

from trainer.models.kernels import DECODER_BACKENDS, only

VALUES = torch.randn(1, 1, 4, 8, generator=torch.Generator().manual_seed(0))


def test_kernel_by_name_gives_torchs_own_values():
    with only("math"):
        alone = attention(VALUES, VALUES, VALUES)
    assert torch.allclose(alone, attention(VALUES, VALUES, VALUES), atol=1e-6)


def test_kernel_that_a_cpu_lacks_fails_and_the_choice_ends_with_the_block():
    with only("cudnn"), pytest.raises(RuntimeError):
        attention(VALUES, VALUES, VALUES)
    with only(None):
        assert attention(VALUES, VALUES, VALUES).shape == VALUES.shape


def test_kernels_are_torchs_own_names():
    from torch.nn.attention import SDPBackend

    assert all(hasattr(SDPBackend, name) for name in DECODER_BACKENDS.values())
