"""What the suite leaves out unless the environment names it: cases that are much like others."""

import os

import pytest

WHOLE = os.environ.get("ROCMATRIX_REHEARSAL") == "whole"
long = pytest.mark.skipif(
    not WHOLE, reason="a case much like others, or one of minutes; ROCMATRIX_REHEARSAL=whole runs it, too"
)


def examples(count):
    """Return how many generated inputs a property is tried with: `count` at night, a third of them at a stop."""
    return count if WHOLE else count // 3


def one_of(cases, count=1):
    """Return parameters of which the first ones are run, and the others with all that is left out.

    Args:
        cases: values of one parameter, or tuples of several; each takes ranks through the same code.
        count: how many are run, 1 or more.
    """
    cases = list(cases)
    return [
        *cases[:count],
        *(
            pytest.param(*each, marks=long) if isinstance(each, tuple) else pytest.param(each, marks=long)
            for each in cases[count:]
        ),
    ]
