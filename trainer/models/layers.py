"""The parts that networks are made of, by the names that metadata.json gives them."""

from __future__ import annotations

from torch import Tensor, nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"ReLU": nn.ReLU, "GELU": nn.GELU, "SiLU": nn.SiLU, "Tanh": nn.Tanh}


class RowsNorm(nn.BatchNorm1d):
    """Batch norm that takes a batch of one row, which has no spread, by the running figures."""

    def forward(self, input: Tensor) -> Tensor:
        """Return (rows, width) normed."""
        if self.training and len(input) < 2:
            return nn.functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )
        return super().forward(input)


def norm_layers(norm: str, width: int) -> list[nn.Module]:
    """Return the layers of a norm by its name, perhaps none."""
    if norm == "none":
        return []
    return [RowsNorm(width) if norm == "batch" else nn.LayerNorm(width)]


def dropout_layers(dropout: float) -> list[nn.Module]:
    """Return the dropout layer, none where nothing is dropped."""
    return [nn.Dropout(dropout)] if dropout else []
