"""The list of operators whose gradients are checked."""

from __future__ import annotations

from trainer.diagnostics.probes.learning.operators import operators

OPERATORS = {operator.name: operator for operator in operators("cpu")}


def test_operators_are_about_thirty_and_their_names_differ() -> None:
    assert len(OPERATORS) == len(operators("cpu")) >= 30
