"""A trained model loaded with the base of its adapter."""

from __future__ import annotations

import json

import pytest

from tests.fixtures.decoders import TOKENIZER
from trainer.analysis.language.loading import load
from trainer.analysis.language.merging import merge_to
from trainer.runtime.errors import TrainerError


def test_adapter_whose_base_is_gone_names_it(adapter, base, tmp_path):
    base.rename(tmp_path / "moved")
    with pytest.raises(TrainerError) as caught:
        load(adapter)
    assert caught.value.code == "RM712"
    assert load(adapter, base=tmp_path / "moved").adapted


def with_tokens(folder, count):
    """Write tokenizer files with `count` tokens more than the bytes' own."""
    content = json.loads(TOKENIZER.files()["tokenizer.json"])
    last, size = content["added_tokens"][-1], TOKENIZER.size
    content["added_tokens"] += [{**last, "id": size + n, "content": f"<new{n}>"} for n in range(count)]
    (folder / "tokenizer.json").write_text(json.dumps(content))
    (folder / "tokenizer_config.json").write_bytes(TOKENIZER.files()["tokenizer_config.json"])


def test_tokenizer_and_template_that_an_adapter_brings_are_used_and_merged(adapter, base, tmp_path):
    assert load(adapter).template.text == (base / "chat_template.jinja").read_text()
    with_tokens(adapter, 1)
    (adapter / "chat_template.jinja").write_text("{% for each in messages %}<new0>{{ each.content }}{% endfor %}")
    loaded = load(adapter)
    assert loaded.tokenizer.encode("<new0>").ids == [TOKENIZER.size]
    assert loaded.template.prompt([{"role": "user", "content": "a"}]) == "<new0>a"
    assert set(load(adapter).tokenizer.stops) == {256, 258}, "the base's configuration names stop tokens, too"
    merge_to(loaded, tmp_path / "merged")
    for name in ("tokenizer.json", "chat_template.jinja"):
        assert (tmp_path / "merged" / name).read_bytes() == (adapter / name).read_bytes()


def test_adapter_with_more_tokens_than_its_base_has_embeddings_for_is_refused_with_what_to_do(adapter):
    with_tokens(adapter, 500)
    with pytest.raises(TrainerError, match="resize_token_embeddings") as caught:
        load(adapter)
    assert caught.value.code == "RM704"
