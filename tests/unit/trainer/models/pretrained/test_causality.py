"""Models in which a token sees later ones are refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from trainer.models.pretrained.causality import require_causal
from trainer.runtime.errors import TrainerError


class Mixing(nn.Module):
    """Logits that are sums of the embeddings up to each token, or of all."""

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        object.__setattr__(self, "base", self)  # no submodule: it would hold itself
        self.config = SimpleNamespace(vocabulary=8)
        self.embedding = nn.Embedding(8, 4)
        self.mask = torch.ones(16, 16).tril() if causal else torch.ones(16, 16)

    def get_input_embeddings(self) -> nn.Module:
        """Return the embedding."""
        return self.embedding

    def forward(self, tokens: Tensor) -> Tensor:
        """Return (rows, tokens, width)."""
        return self.mask @ self.embedding(tokens)


def test_model_is_refused_only_where_later_tokens_are_seen_and_is_left_as_it_was():
    torch.manual_seed(0)
    causal = Mixing(causal=True).train()
    require_causal(causal, Path("model"))
    assert (causal.training, len(causal.embedding._forward_hooks)) == (True, 0)
    with pytest.raises(TrainerError) as caught:
        require_causal(Mixing(causal=False), Path("model"))
    assert (caught.value.code, caught.value.where) == ("RM701", "model")
