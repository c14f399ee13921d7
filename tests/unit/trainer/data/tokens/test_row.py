"""How many tokens of a row carry loss."""

from hypothesis import given
from hypothesis import strategies as st

from trainer.data.tokens.row import TokenRow


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=6))
def test_first_token_never_carries_loss(weights):
    row = TokenRow(tokens=[1] * len(weights), weights=weights, where="x:1")
    other = TokenRow(tokens=[1] * len(weights), weights=[1.0 - (weights[0] > 0), *weights[1:]], where="x:1")
    assert row.trained == other.trained == sum(weight > 0 for weight in weights) - (weights[0] > 0)
