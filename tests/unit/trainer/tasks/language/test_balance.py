"""The weight of bad answers that is advised for how many there are."""

import pytest

from trainer.tasks.language.balance import state_balance


@pytest.mark.parametrize(
    ("good", "bad", "bad_weight", "advice"),
    [
        (40, 20, 1.0, "2.00 to 1; 1 to 1.33 is advised: --kto-bad-weight 1.5 to 2"),
        (40, 20, 1.5, ""),
        (40, 20, 2.0, ""),
        (20, 40, 1.0, "0.50 to 1; 1 to 1.33 is advised: --kto-bad-weight 0.375 to 0.5"),
        (10, 10, 1.0, ""),
    ],
)
def test_weights_far_from_the_numbers_of_answers_are_stated_with_better_ones(good, bad, bad_weight, advice, capsys):
    state_balance(good, bad, good_weight=1.0, bad_weight=bad_weight)
    printed = capsys.readouterr().err
    assert (advice in printed, bool(printed.strip())) == (True, bool(advice)), printed
