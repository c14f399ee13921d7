"""Decoders over real ranks of gloo on the CPU: each way to share a model trains like one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.left_out import one_of
from trainer.distributed.parallel.sequence import part_of, places
from trainer.models.decoder.masks import AttentionLayout
from trainer.runtime.errors import TrainerError

Found = list[dict[str, Any]]
CASES = {
    2: {
        "sequence": "llama,window,untied,lora",
        "pipeline": "llama,untied,lora",
        "fsdp2": "llama,window,lora",
        "ddp": "lora",
    },
    3: {"sequence": "gpt2", "pipeline": "gpt2,window", "fsdp2": "untied,lora"},
}


@pytest.fixture(scope="module", params=one_of(CASES))
def found(request: pytest.FixtureRequest, two_ranks: Callable[..., Found]) -> Found:
    words = [f"{parallel}:{kinds}" for parallel, kinds in CASES[request.param].items()]
    return two_ranks(Path(__file__).with_name("language_program.py"), *words, ranks=request.param)


def test_decoder_over_ranks_trains_like_one_process(found: Found) -> None:
    """Weights, losses, norms before clipping and evaluation, after four steps with pieces and rows for one rank."""
    cases = CASES[len(found)]
    for rank in found:
        assert len(rank) == sum(len(kinds.split(",")) for kinds in cases.values())
        for name, dtypes in rank.items():
            for dtype, figures in dtypes.items():
                # fp32 rounds sums in another order: 6e-8 a step, made larger by AdamW's division
                limit = {"float64": 1e-11, "float32": 1e-5}[dtype]
                assert len(figures) == 4
                for part, figure in figures.items():
                    assert figure < (10 * limit if part == "weights" else limit), (name, dtype, part, figure)


def test_spans_of_all_ranks_are_the_row_with_equal_work() -> None:
    for ranks in (1, 2, 3, 8):
        held = [places(rank, ranks) for rank in range(ranks)]
        assert sorted(place for both in held for place in both) == list(range(2 * ranks))
        assert len({sum(both) for both in held}) == 1  # attention of a span costs its place


def test_row_that_cannot_be_cut_evenly_is_refused_with_the_multiple() -> None:
    world: Any = SimpleNamespace(rank=1, world_size=3)
    with pytest.raises(TrainerError, match="RM563") as caught:
        part_of(256, world)
    assert "multiple of 6" in str(caught.value.next)
    assert part_of(258, world).spans == (slice(43, 86), slice(172, 215))


@pytest.mark.parametrize("window", [None, 3])
def test_mask_of_a_span_is_its_rows_of_the_whole_mask(window: int | None) -> None:
    documents = torch.tensor([[0, 0, 0, 1, 1, 1, 1, -1], [0, 1, 1, 1, 1, 1, 2, 2]])
    for each in (None, documents):
        layout = AttentionLayout(rows=2, tokens=8, device=torch.device("cpu"), documents=each)
        for span in (slice(0, 2), slice(2, 4), slice(6, 8)):
            found = layout.of_span(span, window)
            assert torch.equal(found, layout.dense(window)[:, :, span, : span.stop])
            assert not layout.dense(window)[:, :, span, span.stop :].any()
