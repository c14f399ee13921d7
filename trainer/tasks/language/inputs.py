"""Tokenizer and chat template of a model folder, or those of a new model."""

from __future__ import annotations

from pathlib import Path

from trainer.data.tokens.chat_template import CHATML, ChatTemplate, read_template
from trainer.data.tokens.tokenizer import ByteTokenizer, Tokenizer, read_tokenizer
from trainer.models.pretrained import folder as pretrained
from trainer.runtime.errors import TrainerError


def tokenizer_of(folder: Path | None) -> Tokenizer:
    """Return a folder's tokenizer, bytes without one.

    Raises:
        TrainerError: RM700 for a folder that is missing or no model's, RM705, RM716.
    """
    if folder is None:
        return ByteTokenizer()
    pretrained.read_config(folder)  # a missing folder is named before its tokenizer
    return read_tokenizer(folder)


def template_of(folder: Path | None, tokenizer: Tokenizer) -> ChatTemplate | None:
    """Return the model's chat template, ChatML for a new model, None where the folder has none."""
    if folder is None:
        return ChatTemplate(text=CHATML, source="ChatML, built in", special=tokenizer.special)
    try:
        return read_template(folder, tokenizer.special)
    except TrainerError:
        return None  # texts and completions need none; the first conversation says what is missing
