"""What the suite leaves out unless the environment names it: cases that are much like others."""

import os

import pytest

long = pytest.mark.skipif(
    os.environ.get("ROCMATRIX_REHEARSAL") != "whole",
    reason="a case much like others; ROCMATRIX_REHEARSAL=whole runs it, too",
)
