"""Causal models of transformers by their own class, with what the loop asks of a decoder.

For families that the built-in decoder does not have. Nothing is fetched, no code of a model folder is run
(trust_remote_code stays off), and no pickle is opened. Each row is one document: a class may attend in ways of its own,
so rows are not packed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.data.tokens.labels import PADDING
from trainer.models.pretrained import shards
from trainer.models.pretrained.causality import require_causal
from trainer.models.pretrained.families import FAMILIES, is_built_in, require_dense
from trainer.runtime.errors import TrainerError

CHECKED_TOKENS, CLOSE = 16, 1e-3  # of a comparison of logits with the head's product; relative to the largest
# Of configurations: what is done to logits after the head's product, which small ones would not show.
AFTER_HEAD = ("final_logit_softcapping", "logit_scale", "logits_scaling", "lm_head_multiplier", "output_multiplier")


# Towers of models that read more than text; rows have none of it.
OTHER_INPUTS = re.compile(r"(^|\.)(vision|visual|image|audio|speech)[a-z_]*\.")
# Where messages of transformers go on with pages: the names of all that it knows, and where else to look.
PAGES = re.compile(
    r"\s*(Should contain one of|Model type should be one of|You can inspect the repository|\n).*", re.DOTALL
)
POSITIONS = re.compile(r"(^|\.)(wpe|embed_positions|position_embeddings?|pos_emb\w*)$")


@dataclass(frozen=True, kw_only=True)
class OwnConfig:
    """What is asked of a decoder's configuration: sizes, and the length of a table of positions, None where unknown."""

    vocabulary: int
    positions: int | None = None


@dataclass(kw_only=True)
class OwnCache:
    """Keys, values and whatever else a class keeps of earlier tokens; None before the first call."""

    value: Any = None


def is_own_class(raw: Mapping[str, Any]) -> bool:
    """Return whether transformers' class computes a model: one of its families alone, or of ours with what is its own.

    Args:
        raw: content of config.json.
    """
    if raw.get("model_type") not in FAMILIES:
        return True
    return not is_built_in(raw) and importlib.util.find_spec("transformers") is not None


class OwnClassDecoder(nn.Module):
    """A causal language model of transformers.

    plain_head: logits are hidden states times the head's weight, so that a loss can form them in chunks; otherwise
    they are taken whole from the model.
    base_values: by name, of weights that an adapter by peft changes in place; `adapters_disabled` puts them back.
    budget: `adapters.adalora.RankBudget` of an adapter whose ranks change in training, else None.
    """

    def __init__(self, causal: Any) -> None:
        super().__init__()
        self.base_values: dict[str, Tensor] = {}
        self.budget: Any = None
        self.causal = causal
        vocabulary = int(causal.get_input_embeddings().weight.shape[0])
        self.config = OwnConfig(vocabulary=vocabulary, positions=_table_of_positions(causal))
        self.plain_head = True

    @property
    def base(self) -> Any:
        """The model without what peft put around it."""
        return self.causal.get_base_model() if hasattr(self.causal, "get_base_model") else self.causal

    @property
    def has_prompt(self) -> bool:
        """Whether peft puts learned tokens before each row."""
        return bool(getattr(getattr(self.causal, "active_peft_config", None), "is_prompt_learning", False))

    @property
    def blocks(self) -> list[nn.Module]:
        """The layers: the list of modules that holds most weights."""
        lists = [module for module in self.causal.modules() if isinstance(module, nn.ModuleList)]
        return list(max(lists, key=_weights_of, default=[]))

    @property
    def network(self) -> nn.Module:
        """The module whose names are those of the files."""
        found: nn.Module = self.causal
        return found

    @property
    def head_weight(self) -> Tensor:
        """The weight (vocabulary, width) of the output embedding."""
        weight: Tensor = self.base.get_output_embeddings().weight
        return weight

    def hidden(
        self,
        tokens: Tensor,
        *,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
        cache: OwnCache | None = None,
        part: Any = None,
    ) -> Tensor:
        """Return hidden states after the last norm, (rows, tokens, width).

        Args:
            tokens: token ids, (rows, tokens).
            positions: accepted and left to the class, which counts from 0: rows are single documents.
            documents: (rows, tokens), PADDING at the end of a row; else one document.
            cache: filled by the call, and read by the next one; None to keep none.
            part: None; rows of these models are not split.
        """
        assert part is None, "rows of a model by its own class are not split"
        outputs = self._called(self.base.base_model, tokens, documents, cache)
        states: Tensor = outputs.last_hidden_state
        return states

    def forward(self, tokens: Tensor, *, documents: Tensor | None = None, cache: OwnCache | None = None) -> Tensor:
        """Return logits (rows, tokens, vocabulary).

        Args:
            tokens: token ids, (rows, tokens).
            documents: as for `hidden`.
            cache: as for `hidden`.
        """
        logits: Tensor = self._called(self.causal, tokens, documents, cache).logits
        return logits[:, -tokens.shape[1] :]  # learned tokens come before those of the row

    def _called(self, module: Any, tokens: Tensor, documents: Tensor | None, cache: OwnCache | None) -> Any:
        mask = None if documents is None else (documents != PADDING).long()
        kept: dict[str, Any] = {"use_cache": cache is not None}
        if cache is not None and cache.value is not None:
            kept["past_key_values"] = cache.value
        outputs = module(input_ids=tokens, attention_mask=mask, return_dict=True, **kept)
        if cache is not None:
            cache.value = getattr(outputs, "past_key_values", None) or getattr(outputs, "cache_params", None)
        return outputs

    def next_logits(self, tokens: Tensor, cache: OwnCache) -> Tensor:
        """Return the logits of the token after the last one, (vocabulary,), of tokens (1, tokens)."""
        if self.has_prompt:  # peft puts learned tokens before each call's: all are computed again
            cache.value = tokens if cache.value is None else torch.cat([cache.value, tokens], dim=1)
            again: Tensor = self(cache.value)[0, -1]
            return again
        logits: Tensor = self(tokens, cache=cache)[0, -1]
        return logits

    def new_cache(self) -> OwnCache:
        """Return an empty cache."""
        return OwnCache()

    @torch.no_grad()
    def look_at_head(self) -> None:
        """See whether logits are the head's product alone; no bias, cap, scale or adapter is on them then.

        An adapter of the head changes nothing at first, so that a comparison would not show it.
        """
        head = self.base.get_output_embeddings()
        adapted = type(head).__module__.startswith("peft.") and not hasattr(head, "modules_to_save")
        after = adapted or any(getattr(self.base.config, name, None) not in (None, 0, 1.0) for name in AFTER_HEAD)
        if after or self.has_prompt or getattr(head, "bias", None) is not None:
            self.plain_head = False
            return
        if self.head_weight.untyped_storage().device.type == "meta":  # tensors without data, of a plan: none to compare
            return
        generator = torch.Generator().manual_seed(0)
        tokens = torch.randint(self.config.vocabulary, (1, CHECKED_TOKENS), generator=generator)
        was = self.training
        self.eval()
        try:
            exact = self(tokens).float()
            found = nn.functional.linear(self.hidden(tokens), self.head_weight).float()
            self.plain_head = bool((found - exact).abs().max() <= CLOSE * exact.abs().max().clamp(min=1e-6))
        except (AttributeError, RuntimeError, ValueError, TypeError):  # another shape, or no output embedding at all
            self.plain_head = False
        self.train(was)


def _table_of_positions(causal: Any) -> int | None:
    """Return the length of a class's table of learned positions, None where it has none.

    OPT's table has two rows more than there are positions, so that the configuration's number counts, too.
    """
    tables = [
        module.num_embeddings
        for name, module in causal.named_modules()
        if isinstance(module, nn.Embedding) and POSITIONS.search(name) and not OTHER_INPUTS.search(name)
    ]
    stated = getattr(causal.config, "max_position_embeddings", None)
    return min([*tables, stated] if isinstance(stated, int) else tables) if tables else None


def _weights_of(modules: nn.ModuleList) -> int:
    return sum(weight.numel() for weight in modules.parameters())


def _transformers(family: Any) -> Any:
    try:
        import transformers
    except ImportError:
        known = ", ".join(sorted(FAMILIES))
        why = f"built in: {known}; others are computed by transformers, which is not installed"
        raise TrainerError("RM701", what=f"model_type {family!r}", where="config.json", why=why) from None
    return transformers


@contextlib.contextmanager
def _refused(raw: Mapping[str, Any], folder: Path | None) -> Iterator[None]:
    """Have no hub be reached within, and turn what transformers raises into an error that names the folder."""
    before = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")}
    os.environ.update(dict.fromkeys(before, "1"))
    try:
        yield
    except (ValueError, KeyError, OSError, ImportError, AttributeError, TypeError, RuntimeError) as error:
        reason = PAGES.sub("", str(error))[:300]
        what = f"transformers does not make model_type {raw.get('model_type')!r}: {type(error).__name__}: {reason}"
        own = (
            "config.json names code of the folder's own (auto_map), and none of a folder is run"
            if "auto_map" in raw
            else ""
        )
        raise TrainerError("RM701", what=what, where=str(folder or "config.json"), why=own) from None
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _with_infinity(value: Any) -> Any:
    """Return a value of config.json with the numbers that JSON has not, which transformers writes as objects."""
    if isinstance(value, dict):
        special = value.get("__float__") if len(value) == 1 else None
        return float(special) if special else {key: _with_infinity(each) for key, each in value.items()}
    return [_with_infinity(each) for each in value] if isinstance(value, list) else value


def made(raw: Mapping[str, Any]) -> OwnClassDecoder:
    """Return the model that config.json describes, with first weights of its own.

    Raises:
        TrainerError: RM701 where transformers is missing or has no such causal model, RM707 for quantised weights.
    """
    library = _transformers(raw.get("model_type"))
    require_dense(raw)
    with _refused(raw, None):
        config = library.AutoConfig.for_model(**_with_infinity(dict(raw)))
        return OwnClassDecoder(_causal(library, lambda how: library.AutoModelForCausalLM.from_config(config, **how)))


def read(folder: Path, raw: Mapping[str, Any], dtype: torch.dtype | None) -> OwnClassDecoder:
    """Return a folder's model on the CPU, in `dtype` or the one that transformers chooses.

    Args:
        folder: in Hugging Face layout.
        raw: content of its config.json.
        dtype: of all weights; None for the one in config.json.

    Raises:
        TrainerError: RM701 where transformers is missing or has no such causal model, RM703 for weights that
            do not fit, RM707 for quantised ones.
    """
    library = _transformers(raw.get("model_type"))
    require_dense(raw)
    reported: dict[str, Any] = {}

    def load(how: Mapping[str, Any]) -> Any:
        causal, info = library.AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype or "auto",
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            **how,
        )
        reported.update(info)
        return causal

    with _refused(raw, folder):
        decoder = OwnClassDecoder(_causal(library, load))
    _require_weights(reported, folder)
    for name, weight in decoder.causal.named_parameters():
        shards.require_finite(weight, name, folder)
    require_causal(decoder, folder)
    decoder.look_at_head()
    return decoder


def _causal(library: Any, load: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Return the model with torch's attention, or with the class's own where it has no other."""
    library.utils.logging.disable_progress_bar()
    try:
        return load({"attn_implementation": "sdpa"})
    except ValueError as error:
        if "attention" not in str(error).lower():
            raise
        return load({"attn_implementation": "eager"})


def _require_weights(info: Mapping[str, Any], folder: Path) -> None:
    """Raise RM703 for weights that are missing, unknown or of another shape: transformers draws or leaves them out."""
    for name, words in (
        ("missing_keys", "missing"),
        ("mismatched_keys", "of another shape"),
        ("unexpected_keys", "unknown"),
    ):
        found = sorted(map(str, info.get(name) or ()))
        if found:
            what = f"{len(found)} tensors are {words}, first {found[0]}"
            raise TrainerError("RM703", what=what, where=str(folder))


def write(folder: Path, decoder: OwnClassDecoder) -> list[str]:
    """Write config.json and weights as transformers does; return the names of the files.

    Args:
        folder: existing folder.
    """
    before = {path.name for path in folder.iterdir()}
    decoder.causal.save_pretrained(folder)
    return sorted({path.name for path in folder.iterdir()} - before)
