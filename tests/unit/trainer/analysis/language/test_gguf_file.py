"""A trained model exported as GGUF and read back."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.decoders import RAWS, folder_of
from trainer.analysis.language.gguf_file import export, interleaved
from trainer.analysis.language.loading import load
from trainer.runtime.errors import TrainerError


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize(("kind", "near"), [("f16", 2e-2), ("q8_0", 0.1)])
def test_gguf_file_read_by_transformers_gives_the_logits(tmp_path, family, kind, near):
    transformers, _ = pytest.importorskip("transformers"), pytest.importorskip("gguf")
    loaded = load(folder_of(tmp_path / family, RAWS[family]))
    figures = export(loaded, tmp_path / "model.gguf", kind=kind)
    assert figures["largest_error"] < 5e-3
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf", local_files_only=True)
    tokens = torch.arange(30).reshape(1, 30)
    with torch.no_grad():
        expected = loaded.made.model(tokens)
        assert (theirs(tokens).logits - expected).abs().max() < near
    assert expected.abs().max() > 10 * near


def test_gguf_file_holds_tokens_stop_and_template(base, tmp_path):
    gguf = pytest.importorskip("gguf")
    export(load(base), tmp_path / "model.gguf", kind="q8_0")
    fields = gguf.GGUFReader(tmp_path / "model.gguf").fields
    assert fields["tokenizer.ggml.eos_token_id"].contents() == 256
    assert len(fields["tokenizer.ggml.tokens"].contents()) == 320
    assert "im_start" in fields["tokenizer.chat_template"].contents()


def test_gguf_of_another_family_is_refused(tmp_path):
    pytest.importorskip("gguf")
    with pytest.raises(TrainerError) as caught:
        export(load(folder_of(tmp_path / "gpt2", RAWS["gpt2"])), tmp_path / "model.gguf", kind="f16")
    assert caught.value.code == "RM707"


def test_interleaving_puts_halves_next_to_each_other():
    import numpy as np

    assert interleaved(np.arange(8)[:, None], 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
