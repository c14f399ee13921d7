"""The decoder: tokens to hidden states, and to logits where all of them are wanted.

A loss takes hidden states and the head's weight, and forms logits in chunks; `forward` is for generation and tests.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.models.decoder.attention import Attention, LayerCache
from trainer.models.decoder.config import DecoderConfig
from trainer.models.decoder.layers import FeedForward, norm_of
from trainer.models.decoder.masks import AttentionLayout, SequencePart
from trainer.models.decoder.rope import frequencies, rotation
from trainer.models.decoder.tiles import TILE

Cache = list[LayerCache]


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x)): (rows, tokens, width) to the same.

    `fast` computes the same in another way, see models.fast; None, and wherever there is a cache: as written here.
    """

    fast: Callable[..., Tensor] | None = None

    def __init__(self, config: DecoderConfig, layer: int) -> None:
        super().__init__()
        window = config.windows[layer]
        self.input_layernorm = norm_of(config.norm, config.width)
        self.self_attn = Attention(config.width, config.attention, config.norm, layer=layer, window=window)
        self.post_attention_layernorm = norm_of(config.norm, config.width)
        self.mlp = FeedForward(config.width, config.feed_forward)
        self.dropout = config.dropout

    def forward(
        self,
        states: Tensor,
        layout: AttentionLayout,
        turn: tuple[Tensor, Tensor] | None,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """Return (rows, tokens, width).

        Args:
            states: residual stream, (rows, tokens, width).
            turn: cosine and sine of rotary positions, (rows, 1, tokens, head_dim) each; None for a decoder without.
        """
        if self.fast is not None and cache is None and states.device.type != "meta":
            return self.fast(self, states, layout, turn)
        states = states + self._dropped(self.self_attn(self.input_layernorm(states), layout, turn, cache))
        return states + self._dropped(self.mlp(self.post_attention_layernorm(states)))

    def entered(self, states: Tensor, turn: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value (rows, heads, tokens, head_dim): `forward` up to attention."""
        return self.self_attn.projected(self.input_layernorm(states), turn)

    def stacked(self, states: Tensor) -> Tensor:
        """Return query, key and value in one, (rows, tokens, inner + 2 shared): `forward` up to their product."""
        product: Tensor = self.self_attn.qkv_proj(self.input_layernorm(states))
        return product

    def left(self, states: Tensor, attended: Tensor) -> Tensor:
        """Return (rows, tokens, width): `forward` from attention's result on."""
        stream, hidden = self.joined(states, attended)
        return stream + self._dropped(self.mlp(hidden))

    def joined(self, states: Tensor, attended: Tensor) -> tuple[Tensor, Tensor]:
        """Return the residual stream and what the feed-forward layer is given: `left` up to that layer."""
        states = states + self._dropped(self.self_attn.o_proj(attended.transpose(1, 2).flatten(2)))
        return states, self.post_attention_layernorm(states)

    def take_tiles(self) -> None:
        """Compute the feed-forward layer for TILE tokens at a time, but where it draws random numbers."""
        drawn = any(getattr(module, "dropout", 0) for module in self.mlp.modules())
        self.mlp.tile = 0 if drawn else TILE

    def _dropped(self, states: Tensor) -> Tensor:
        return functional.dropout(states, self.dropout, self.training) if self.dropout else states


class Backbone(nn.Module):
    """Embeddings, blocks and the last norm: (rows, tokens) to (rows, tokens, width).

    `stream` is the dtype of the residual stream, None for that of the embeddings; `last_norm` computes the last norm
    in another way, see models.fast.
    """

    stream: torch.dtype | None = None
    last_norm: Callable[[nn.Module, Tensor], Tensor] | None = None

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self._inverse: dict[torch.device, Tensor] = {}
        self.embed_tokens = nn.Embedding(config.vocabulary, config.width)
        if config.positions is not None:
            self.embed_positions = nn.Embedding(config.positions, config.width)
        self.layers = nn.ModuleList(Block(config, layer) for layer in range(config.layers))
        self.norm = norm_of(config.norm, config.width)

    def forward(self, tokens: Tensor, positions: Tensor, layout: AttentionLayout, cache: Cache | None) -> Tensor:
        """Return hidden states after the last norm, (rows, tokens, width).

        Args:
            tokens: token ids, (rows, tokens).
            positions: position of each token in its document, from 0, (rows, tokens).
            cache: keys and values of earlier tokens, one entry a layer, extended in place; None to keep none.
        """
        states = self.embedded(tokens, positions)
        if self.stream is not None and states.device.type != "meta":
            states = states.to(self.stream)
        turn = self.rotation(positions)
        for number, block in enumerate(self.layers):
            states = block(states, layout, turn, None if cache is None else cache[number])
        if self.last_norm is not None and cache is None and states.device.type != "meta":
            return self.last_norm(self.norm, states)
        outputs: Tensor = self.norm(states)
        return outputs

    def embedded(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Return the residual stream before the first block, (rows, tokens, width)."""
        states: Tensor = self.embed_tokens(tokens)
        if self.config.embedding_scale != 1.0:
            # Rounded to the dtype of the states first, as Gemma was trained.
            states = states * torch.tensor(self.config.embedding_scale, dtype=states.dtype, device=states.device)
        if self.config.positions is not None:
            states = states + self.embed_positions(positions)
        return functional.dropout(states, self.config.dropout, self.training) if self.config.dropout else states

    def rotation(self, positions: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return cosine and sine of positions (rows, tokens), see `rope.rotation`; None for a decoder without."""
        rope = self.config.rope
        if rope is None:
            return None
        device = positions.device
        if device not in self._inverse:  # no buffer: a cast of the model to bf16 would round the frequencies
            with torch.device("cpu"):  # also where the model is made on another default device
                self._inverse[device] = frequencies(rope, self.config.attention.head_dim).to(device)
        return rotation(self._inverse[device], positions, rope.attention_factor)


class Decoder(nn.Module):
    """A causal language model of any supported family.

    Parameters are named as Llama's are in Hugging Face folders; `pretrained` maps the names of other families.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Backbone(config)
        if not config.tied:
            self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)

    plain_head = True  # logits are hidden states times the head's weight

    @property
    def blocks(self) -> list[nn.Module]:
        """The layers that activation checkpointing computes again."""
        return list(self.model.layers)

    @property
    def network(self) -> nn.Module:
        """The module whose names `pretrained` maps to those of the files: the decoder itself."""
        return self

    @property
    def head_weight(self) -> Tensor:
        """The weight (vocabulary, width) that turns hidden states into logits; the embedding where they are tied."""
        return self.model.embed_tokens.weight if self.config.tied else self.lm_head.weight

    def hidden(
        self,
        tokens: Tensor,
        *,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
        cache: Cache | None = None,
        part: SequencePart | None = None,
    ) -> Tensor:
        """Return hidden states after the last norm, (rows, tokens, width).

        Args:
            tokens: token ids, (rows, tokens).
            positions: (rows, tokens), by default counted from 0, or from the end of the cache.
            documents: (rows, tokens), see AttentionLayout; positions are then to begin at 0 in each document.
            cache: keys and values of earlier tokens, one entry a layer, extended in place; None to keep none.
            part: where rows are split over processes; tokens and positions, then to be given, are of the own part,
                documents of whole rows.
        """
        past = 0 if cache is None or cache[0].keys is None else cache[0].keys.shape[2]
        rows, length = tokens.shape
        if positions is None:
            positions = torch.arange(past, past + length, device=tokens.device).expand(rows, length)
        whole = length if part is None else max(span.stop for span in part.spans)
        layout = AttentionLayout(
            rows=rows, tokens=whole, device=tokens.device, documents=documents, past=past, part=part
        )
        outputs: Tensor = self.model(tokens, positions, layout, cache)
        return outputs

    def forward(
        self,
        tokens: Tensor,
        *,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Return logits (rows, tokens, vocabulary).

        Args:
            tokens: token ids, (rows, tokens).
            positions: (rows, tokens), by default counted from 0, or from the end of the cache.
            documents: number of each token's packed document, (rows, tokens); None where each row is one document.
            cache: keys and values of earlier tokens, one entry a layer, extended in place; None to keep none.
        """
        states = self.hidden(tokens, positions=positions, documents=documents, cache=cache)
        return functional.linear(states, self.head_weight)

    def next_logits(self, tokens: Tensor, cache: Cache) -> Tensor:
        """Return the logits of the token after the last one, (vocabulary,).

        Args:
            tokens: token ids, (1, tokens).
            cache: of the tokens before, extended in place.
        """
        return self.head_weight @ self.hidden(tokens, cache=cache)[0, -1]

    def new_cache(self) -> Cache:
        """Return an empty cache of keys and values."""
        return [LayerCache() for _ in range(self.config.layers)]

    @torch.no_grad()
    def initialize(self, seed: int | None = None) -> None:
        """Draw weights as GPT-2 did: normal, projections back into the residual stream smaller by sqrt(2 layers).

        `seed` None draws from torch's global generator. Source: Radford et al. 2019, section 2.3.
        """
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                into_residual = name.endswith(("o_proj", "down_proj"))
                std = self.config.initial_std * ((2 * self.config.layers) ** -0.5 if into_residual else 1.0)
                module.weight.normal_(std=std, generator=generator)
                if isinstance(module, nn.Linear) and module.bias is not None:
                    module.bias.zero_()
