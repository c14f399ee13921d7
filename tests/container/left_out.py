"""What the suite leaves out unless the environment names it: cases that are much like others."""

import os

import pytest

WHOLE = os.environ.get("ROCMATRIX_REHEARSAL") == "whole"
long = pytest.mark.skipif(
    not WHOLE, reason="a case much like others, or one of minutes; ROCMATRIX_REHEARSAL=whole runs it, too"
)
