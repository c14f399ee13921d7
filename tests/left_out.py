"""What the suite leaves out unless the environment names it: cases that are much like others."""

import os

import pytest

WHOLE = os.environ.get("ROCMATRIX_REHEARSAL") == "whole"
long = pytest.mark.skipif(
    not WHOLE, reason="a case much like others, or one of minutes; ROCMATRIX_REHEARSAL=whole runs it, too"
)


def one_of(cases):
    """Return parameters of which the first is run, and the others with all that is left out.

    Args:
        cases: values of one parameter, or tuples of several; each takes ranks through the same code.
    """
    first, *others = cases
    return [
        first,
        *(
            pytest.param(*each, marks=long) if isinstance(each, tuple) else pytest.param(each, marks=long)
            for each in others
        ),
    ]
