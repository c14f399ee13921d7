"""A language model to use: a model folder, or an adapter folder with the base model that it names."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainer.data.tokens.chat_template import ChatTemplate, read_template
from trainer.data.tokens.tokenizer import FILE, Tokenizer, read_tokenizer
from trainer.models.adapters import by_peft, peft_format, peft_record
from trainer.models.pretrained import folder as pretrained
from trainer.models.pretrained import own_class
from trainer.runtime.errors import TrainerError

TEMPLATE, TOKENIZER_CONFIG = "chat_template.jinja", "tokenizer_config.json"
RESIZE = (
    "The adapter brings more tokens than its base has embeddings for: write the base with resize_token_embeddings() "
    "and save_pretrained() of transformers, and give it with --base. Where the adapter does not use the added tokens, "
    "move its tokenizer files elsewhere."
)


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model in evaluation mode on the CPU, with tokenizer and, where there is one, chat template.

    adapted: whether an adapter is on it, which `adapters_disabled` switches off.
    """

    made: pretrained.Pretrained
    tokenizer: Tokenizer
    template: ChatTemplate | None
    adapted: bool


def load(folder: Path, base: Path | None = None) -> Loaded:
    """Return the model of `folder`; `base` is where an adapter's base model is, if not where the adapter records it.

    An adapter's own tokenizer and chat template, which other programs save with it, come before the base's: it was
    trained with them.

    Raises:
        TrainerError: RM700 to RM707, RM712, RM713 and RM720.
    """
    adapter = (folder / peft_record.CONFIG).is_file()
    refuse_other_run(folder)
    source = (base or base_of(folder)) if adapter else folder
    by_package = adapter and by_peft.is_by_peft(folder)
    made = _by_own_class(source) if by_package else pretrained.read(source, to_compute=True)
    brought = folder if adapter and (folder / FILE).is_file() else None
    tokenizer = read_tokenizer(brought or source, base=source)
    pretrained.require_vocabulary(made.model, tokenizer.size, str(brought or source), next=RESIZE if brought else "")
    if by_package:
        by_peft.load(made.model, folder)
    elif adapter:
        peft_format.read(made.model.network, folder, family=made.family)
    made.model.eval()
    template = _template(folder if _has_template(folder) else source, tokenizer.special)
    made = replace(made, tokenizer_from=brought)
    return Loaded(made=made, tokenizer=tokenizer, template=template, adapted=adapter)


def _by_own_class(source: Path) -> pretrained.Pretrained:
    raw = pretrained.read_config(source)
    return pretrained.Pretrained(model=own_class.read(source, raw, None), raw=raw, source=source)


def refuse_other_run(folder: Path) -> None:
    """Raise RM720 where the folder is a finished run's on bars or a table."""
    if (folder / pretrained.CONFIG).exists() or not (folder / "metadata.json").is_file():
        return
    with contextlib.suppress(OSError, ValueError):
        record = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        if isinstance(record, dict) and "scaler" in record:
            raise TrainerError(
                "RM720", what=f"{folder} is a run on {record.get('data', {}).get('name')}", where=str(folder)
            )


def base_of(folder: Path) -> Path:
    """Return the base model's folder that an adapter names: as it stands, or relative to the adapter.

    Raises:
        TrainerError: RM712 where it names none or there is no such folder.
    """
    path = folder / peft_record.CONFIG
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8"))
        named = Path(record["base_model_name_or_path"])
    except (ValueError, KeyError, TypeError) as error:
        raise TrainerError("RM712", what="adapter_config.json names no base model", where=str(path)) from error
    for place in (named, folder / named):
        if place.is_dir():
            return place
    what = f"the adapter's base model {named} is no folder here"
    raise TrainerError("RM712", what=what, where=str(path), next="Give its folder with --base.")


def _has_template(folder: Path) -> bool:
    config = folder / TOKENIZER_CONFIG
    named = config.is_file() and b'"chat_template"' in config.read_bytes()
    return named or (folder / TEMPLATE).is_file()


def _template(folder: Path, special: Mapping[str, str]) -> ChatTemplate | None:
    try:
        return read_template(folder, special)
    except TrainerError:
        return None
