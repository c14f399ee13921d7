from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from trainer.engine.steps.attention_selection import written_out
from trainer.models import transformer as module
from trainer.models.activation_checkpointing import checkpointed, layers
from trainer.models.build import build, size
from trainer.models.int8 import quantized
from trainer.models.kernels import only
from trainer.models.transformer import Attention, Tokens, transformer, use_kernel
from trainer.telemetry.flops import flops_per_row

pytestmark = pytest.mark.usefixtures("torch_as_before", "one_thread")

COLUMNS, WIDTH, HEADS, HIDDEN, OUTPUTS = 5, 16, 4, 24, 2
EMBEDDINGS = [{"column": 1, "values": 4, "width": WIDTH}]


@pytest.fixture
def one_thread() -> None:
    torch.set_num_threads(1)


def network(**more: Any) -> nn.Sequential:
    torch.manual_seed(0)
    how = {"token_width": WIDTH, "heads": HEADS, "embeddings": EMBEDDINGS, **more}
    return transformer(COLUMNS, [HIDDEN, HIDDEN], OUTPUTS, **how)


def table(rows: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, COLUMNS, generator=generator)
    values[:, 1] = torch.randint(4, (rows,), generator=generator).float()
    return values


def test_tokens_are_the_answers_the_numbers_and_the_codes() -> None:
    tokens = Tokens(COLUMNS, EMBEDDINGS, WIDTH)
    rows = table(3)
    made = tokens(rows)
    assert made.shape == (3, 1 + COLUMNS, WIDTH)
    assert torch.equal(made[:, 0], tokens.answer.expand(3, -1))
    assert torch.allclose(made[:, 2], rows[:, 2:3] * tokens.weight[1] + tokens.bias[1])
    vector = tokens.embeddings[0].weight[rows[:, 1].long()]  # type: ignore[index, operator]
    assert torch.allclose(made[:, -1], vector + tokens.bias[-1])


def test_code_0_is_the_bias_alone_and_stays_so() -> None:
    made, rows = network(), table(8)
    rows[0, 1] = 0.0
    optimizer = torch.optim.AdamW(made.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        made(rows).square().sum().backward()
        optimizer.step()
    assert torch.equal(made[0](rows)[0, -1], made[0].bias[-1])  # type: ignore[index]


def test_attention_is_softmax_of_products_in_each_head() -> None:
    layer = Attention(WIDTH, HEADS).double()
    tokens = torch.randn(3, 7, WIDTH, dtype=torch.float64)
    queries, keys, values = layer.project(tokens).split(WIDTH, dim=2)
    heads = [each.reshape(3, 7, HEADS, -1).transpose(1, 2) for each in (queries, keys, values)]
    mixed = written_out(heads[0], heads[1], heads[2], causal=False).transpose(1, 2).reshape(3, 7, WIDTH)
    assert torch.allclose(layer(tokens), layer.merge(mixed), atol=1e-12)


def test_transformer_learns_what_columns_mean_together() -> None:
    """SYNTHETIC: the first output is a product of two columns, which no sum over columns gives."""
    made, rows = network(dropout=0.05), table(256)
    targets = torch.stack([rows[:, 0] * rows[:, 2], (rows[:, 1] == 2).float()], dim=1)
    optimizer = torch.optim.AdamW(made.parameters(), lr=5e-3)
    for _ in range(120):
        optimizer.zero_grad()
        nn.functional.mse_loss(made(rows), targets).backward()
        optimizer.step()
    left = (made.eval()(rows) - targets).square().mean(dim=0) / targets.var(dim=0)
    assert left.max() < 0.1
    assert all(value.grad is not None for value in made.parameters())


def test_kernels_agree_and_the_one_named_is_used() -> None:
    made, rows = network(), table(4)
    plain = made(rows)
    for kernel in ("flash", "math"):
        use_kernel(made, kernel)
        assert torch.allclose(made(rows), plain, atol=1e-5)
    use_kernel(made, "efficient")
    with pytest.raises(RuntimeError, match="No viable backend"):  # torch has none for the CPU
        made(rows)


@pytest.mark.parametrize("choice", ["selective", "full"])
def test_recomputation_uses_the_same_kernel(monkeypatch: pytest.MonkeyPatch, choice: str) -> None:
    made, rows, calls = network(dropout=0.2), table(4), list[str | None]()

    @contextlib.contextmanager
    def noted(kernel: str | None) -> Iterator[None]:
        calls.append(kernel)
        with only(kernel):
            yield

    monkeypatch.setattr(module, "only", noted)
    use_kernel(made, "math")
    plain = copy.deepcopy(made)
    checkpointed(made, choice, layers(made))
    gradients = []
    for each in (plain, made):
        torch.manual_seed(1)
        each(rows).square().sum().backward()
        gradients.append([value.grad for value in each.parameters()])
    assert calls == ["math"] * 6  # two blocks: forward alone, then forward and again in backward
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


@pytest.mark.parametrize("kernel", [None, "flash", "math"])
def test_empty_batch_has_gradients_of_zero(kernel: str | None) -> None:
    """Ranks in lockstep compute empty pieces."""
    made = network()
    use_kernel(made, kernel)
    made(table(0)).sum().backward()
    assert all(value.grad is not None and not value.grad.any() for value in made.parameters())


def test_export_takes_any_number_of_rows() -> None:
    """What --export onnx begins with, in torch 2.6 and later; the rest needs packages that are not everywhere."""
    made = network().eval()
    program = torch.export.export(made, (table(2),), dynamic_shapes=({0: torch.export.Dim("rows", min=1)},))
    assert torch.allclose(program.module()(table(9)), made(table(9)), atol=1e-6)


def test_int8_takes_a_scale_for_each_token() -> None:
    made, rows = network().eval(), table(64)
    plain = made(rows)
    assert (quantized(copy.deepcopy(made))(rows) - plain).norm() < 0.05 * plain.norm()


@pytest.mark.parametrize("kernel", [None, "flash", "efficient", "math"])
def test_operations_are_counted_as_written_down(kernel: str | None) -> None:
    made = network(embeddings=[])
    use_kernel(made, kernel)
    tokens = 1 + COLUMNS
    linear = 2 * tokens * (WIDTH * 3 * WIDTH + WIDTH * WIDTH + 2 * WIDTH * HIDDEN)
    attention = 2 * 2 * tokens * tokens * WIDTH
    counted = 3 * (2 * (linear + attention) + 2 * WIDTH * OUTPUTS)
    assert flops_per_row(made, torch.zeros(1, COLUMNS)) == counted
    assert (
        flops_per_row(checkpointed(made, "full", layers(made)), torch.zeros(1, COLUMNS)) == counted
    )  # not what is repeated


def test_description_builds_it_and_gives_its_size() -> None:
    description = {"kind": "transformer", "widths": [COLUMNS, HIDDEN, HIDDEN, OUTPUTS], "activation": "GELU"}
    description |= {"token_width": WIDTH, "heads": HEADS, "embeddings": EMBEDDINGS, "norm": "layer", "dropout": 0.1}
    random = torch.get_rng_state()
    counted = size(description)
    assert torch.equal(random, torch.get_rng_state())
    made = build(description)
    assert counted == sum(value.numel() for value in made.parameters())
    assert made(table(2)).shape == (2, OUTPUTS)
