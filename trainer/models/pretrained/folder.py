"""Read a model from a local folder in Hugging Face layout, and write one. No hub is ever reached."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer.models.decoder.model import Decoder
from trainer.models.decoder.skip_init import SkipInit
from trainer.models.pretrained import own_class, shards
from trainer.models.pretrained.families import decoder_config, file_tensor, is_ignored
from trainer.runtime.errors import TrainerError

CONFIG = "config.json"
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
# Copied unchanged from the source folder: what tokenizes, what renders a chat, and how to generate.
OF_TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
)
COMPANIONS = (*OF_TOKENIZER, "chat_template.jinja", "generation_config.json")
ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gpt2": "GPT2LMHeadModel",
}
_DTYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float64: "float64"}


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """A decoder, the config.json it was made from, and the folder (None for one made here).

    tokenizer_from: folder of the tokenizer's files, where it is another: an adapter may bring its own.
    """

    model: Any  # a Decoder, or an OwnClassDecoder of families that only transformers has
    raw: dict[str, Any]
    source: Path | None = None
    generation: dict[str, Any] = field(default_factory=dict)
    tokenizer_from: Path | None = None

    @property
    def family(self) -> str:
        """The model_type of config.json."""
        return str(self.raw["model_type"])


def read_config(folder: Path) -> dict[str, Any]:
    """Return config.json.

    Raises:
        TrainerError: RM700 where folder or file is missing, RM707 where it is no JSON object.
    """
    if not folder.is_dir():
        what = f"{folder} is no folder" if folder.exists() else f"there is no folder {folder}"
        raise TrainerError("RM700", what=what, why="a model is a local folder; names of a hub are not resolved")
    if not (folder / CONFIG).is_file() and (folder / "adapter_config.json").is_file():
        next = "Write both as one model with `./invokew merge` first, or give the base model's folder."
        what = f"{CONFIG} is missing: the folder holds an adapter, and not the model below it"
        raise TrainerError("RM700", what=what, where=str(folder), next=next)
    within = sorted(path.parent.name for path in folder.glob("*/adapter_config.json"))
    if not (folder / CONFIG).is_file() and within:  # peft writes an adapter of another name than "default" so
        what = f"{CONFIG} is missing; the folder has adapters within: {', '.join(within[:5])}"
        raise TrainerError("RM700", what=what, where=str(folder), next=f"Give one of them: {folder / within[0]}.")
    return shards.read_json(folder / CONFIG, code="RM707")


def read(folder: Path, *, dtype: torch.dtype | None = None, to_compute: bool = False) -> Pretrained:
    """Return the model of a folder on the CPU.

    Args:
        folder: in Hugging Face layout.
        dtype: of all weights; None for the files' own.
        to_compute: where files hold several dtypes (norms in fp32 among products in bf16), have all take the one that
            config.json names, or else the one that most numbers have, as transformers does; products need one.

    Raises:
        TrainerError: RM700 to RM703 and RM707, naming file and tensor.
    """
    raw = read_config(folder)
    if own_class.is_own_class(raw):
        return Pretrained(model=own_class.read(folder, raw, dtype), raw=raw, source=folder)
    config = decoder_config(raw)
    with SkipInit(), torch.device("meta"):  # there, drawing imports the compiler
        model = Decoder(config)
    weights = _weights(model, folder, str(raw["model_type"]), dtype)
    if to_compute and len({value.dtype for value in weights.values()}) > 1:
        weights = {name: value.to(_common_dtype(raw, weights)) for name, value in weights.items()}
    model.load_state_dict(weights, strict=True, assign=True)
    return Pretrained(model=model, raw=raw, source=folder)


def _common_dtype(raw: Mapping[str, Any], weights: Mapping[str, Tensor]) -> torch.dtype:
    """Return the one dtype for weights of several."""
    named = str(raw.get("dtype") or raw.get("torch_dtype")).removeprefix("torch.")
    known = {name: dtype for dtype, name in _DTYPES.items()}
    counts: Counter[torch.dtype] = Counter()
    for value in weights.values():
        counts[value.dtype] += value.numel()
    return known.get(named) or counts.most_common(1)[0][0]


def _weights(model: Decoder, folder: Path, family: str, dtype: torch.dtype | None) -> dict[str, Tensor]:
    """Return the model's parameters from the files, each checked against the shape that config.json implies."""
    stored = _stored_names(shards.weight_map(folder), family)
    expected = {name: file_tensor(family, name) for name in model.state_dict()}
    if model.config.tied:
        _require_one_embedding(folder, stored, expected[EMBEDDING][0])
    places = _places(expected, stored, tied=model.config.tied, where=str(folder))
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    weights: dict[str, Tensor] = {}
    by_file = {original: name for name, original in places.items()}
    mapping = {
        original: stored_file for original, stored_file in shards.weight_map(folder).items() if original in by_file
    }
    for original, value in shards.tensors(folder, mapping):
        name = by_file[original]
        laid = value.t() if expected[name][1] and value.ndim == 2 else value
        if laid.shape != shapes[name]:
            implied = _implied(shapes[name], expected[name][1])
            what = f"{original} has shape {list(value.shape)}; config.json implies {implied}"
            raise TrainerError("RM703", what=what, where=str(folder))
        weights[name] = laid.to(dtype or laid.dtype).contiguous()
    return weights


def _implied(shape: torch.Size, transposed: bool) -> list[int]:
    return list(reversed(shape)) if transposed else list(shape)


def _stored_names(mapping: Mapping[str, str], family: str) -> dict[str, str]:
    """Return the files' names by their full form: those of a bare AutoModel, as GPT-2's first, leave out the prefix."""
    prefix, kept = "transformer." if family == "gpt2" else "model.", [n for n in mapping if not is_ignored(family, n)]
    bare = not any(name.startswith(prefix) for name in kept)
    return {prefix + name if bare and not name.startswith(HEAD) else name: name for name in kept}


def _require_one_embedding(folder: Path, stored: Mapping[str, str], embedding: str) -> None:
    """Raise RM703 where config.json ties the head to the embedding, and the files hold another head: one would be lost.

    Args:
        stored: names in the files by their full form.
        embedding: full name of the embedding.
    """
    if HEAD not in stored or embedding not in stored:
        return
    places = shards.weight_map(folder)
    both = {name: places[name] for name in (stored[HEAD], stored[embedding])}
    one, other = (value for _, value in shards.tensors(folder, both))
    if one.shape != other.shape or not torch.equal(one, other.to(one.dtype)):
        what = f"{stored[HEAD]} and {stored[embedding]} differ, and config.json has tie_word_embeddings"
        next = 'Write "tie_word_embeddings": false into config.json if both were trained.'
        raise TrainerError("RM703", what=what, where=str(folder), next=next)


def _places(
    expected: Mapping[str, tuple[str, bool]], stored: Mapping[str, str], *, tied: bool, where: str
) -> dict[str, str]:
    """Return the name in the files of each parameter.

    Raises:
        TrainerError: RM703 for parameters that no file holds, and for tensors that no parameter takes.
    """
    stored = dict(stored)
    embedding = expected[EMBEDDING][0]
    if tied:  # a tied head may be written beside the embedding or in its place
        head = stored.pop(HEAD, None)
        if embedding not in stored and head is not None:
            stored[embedding] = head
    missing = [name for name, _ in expected.values() if name not in stored]
    unknown = sorted(set(stored) - {name for name, _ in expected.values()})
    if missing or unknown:
        parts = [f"{len(missing)} tensors are missing, first {missing[0]}"] if missing else []
        parts += [f"{len(unknown)} tensors are unknown, first {unknown[0]}"] if unknown else []
        raise TrainerError("RM703", what="; ".join(parts), where=where)
    return {ours: stored[name] for ours, (name, _) in expected.items()}


def file_weights(model: Decoder, family: str) -> dict[str, Tensor]:
    """Return the parameters as the files hold them: names and layout of the family."""
    result = {}
    for name, value in model.state_dict().items():
        stored, transposed = file_tensor(family, name)
        result[stored] = value.detach().cpu().t() if transposed else value.detach().cpu()
    return result


def write(folder: Path, pretrained: Pretrained, *, shard_bytes: int = shards.SHARD_BYTES) -> list[str]:
    """Write config.json, weights and the source's tokenizer files to a folder that is made; return their names.

    Args:
        folder: folder to make.
        shard_bytes: most bytes of one file of weights.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if pretrained.source is not None and folder.samefile(pretrained.source):
        # Tensors may still be mapped from the files that would be overwritten.
        raise TrainerError("RM540", what=f"{folder} is the folder that the model was read from")
    if isinstance(pretrained.model, own_class.OwnClassDecoder):
        written = own_class.write(folder, pretrained.model)
        return [*written, *(name for name in _companions(folder, pretrained) if name not in written)]
    dtype = next(pretrained.model.parameters()).dtype
    raw = {key: value for key, value in pretrained.raw.items() if key not in ("torch_dtype", "dtype")}
    raw |= {"architectures": [ARCHITECTURES[pretrained.family]], "dtype": _DTYPES[dtype]}
    raw["tie_word_embeddings"] = pretrained.model.config.tied
    (folder / CONFIG).write_text(json.dumps(raw, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    names = [CONFIG, *shards.write(folder, file_weights(pretrained.model, pretrained.family), shard_bytes=shard_bytes)]
    return [*names, *_companions(folder, pretrained)]


def _companions(folder: Path, pretrained: Pretrained) -> list[str]:
    names = []
    for name in COMPANIONS:
        place = (pretrained.tokenizer_from if name in OF_TOKENIZER else None) or pretrained.source
        if place is not None and (place / name).is_file():
            shutil.copyfile(place / name, folder / name)
            names.append(name)
    if "generation_config.json" not in names and pretrained.generation:
        text = json.dumps(pretrained.generation, indent=2, sort_keys=True) + "\n"
        (folder / "generation_config.json").write_text(text, encoding="utf-8")
        names.append("generation_config.json")
    return names


def require_vocabulary(model: Any, tokens: int, where: str, *, next: str = "") -> None:
    """See that the model has an embedding for every token id of its tokenizer.

    Args:
        model: decoder, built in or by its own class.
        tokens: number of the tokenizer's ids.
        where: folder of the model, for the message.
        next: what to do instead of what the code's entry states.

    Raises:
        TrainerError: RM704, with both sizes.
    """
    if tokens > model.config.vocabulary:
        what = f"the tokenizer has {tokens} tokens, the model's embedding {model.config.vocabulary}"
        raise TrainerError("RM704", what=what, where=where, next=next)
