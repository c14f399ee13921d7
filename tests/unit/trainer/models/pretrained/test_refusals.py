"""Refusals of values that the built-in decoder does not compute."""

from __future__ import annotations

from trainer.models.pretrained.refusals import NotBuiltInError, not_built_in, unsupported


def test_value_is_named_and_only_one_that_transformers_computes_is_not_built_in():
    refused, left = unsupported("hidden_act", "sine"), not_built_in("hidden_act", "mish")
    assert (refused.code, refused.what) == ("RM707", "hidden_act = 'sine' is not implemented")
    assert (left.code, left.what) == ("RM707", "hidden_act = 'mish' is not built in")
    assert [isinstance(each, NotBuiltInError) for each in (refused, left)] == [False, True]
    assert "transformers" in left.next
