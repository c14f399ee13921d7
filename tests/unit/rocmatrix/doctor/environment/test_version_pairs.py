"""Pairs of torch and ROCm that were built, and others."""

import pytest

from rocmatrix.doctor.environment import version_pairs
from rocmatrix.doctor.environment.lint_input import Pair, Subject
from tests.fixtures.cells import MATRIX


def pair(torch, rocm):
    one = Subject(name="x", pairs=(Pair(torch=torch, rocm=rocm, where="here:3"),))
    return [(f.severity, f.truth) for f in version_pairs.unbuilt([one], MATRIX)]


def test_pairs_that_were_built_are_silent():
    assert pair("==2.5.1", "6.2") == pair("==2.4.1", "6.0") == pair("", "6.3") == pair(">=2.6", "6.3") == []
    assert pair("==2.7.*", "6.3") == []


@pytest.mark.parametrize(
    ("torch", "rocm", "severity", "words"),
    [
        ("==2.5.1", "6.3", "error", "was built for ROCm 6.1, 6.2; ROCm 6.3 carries torch 2.7.0"),
        ("==2.4.1", "6.2", "error", "6.0, 6.1"),
        ("==2.9.1", "7.1", "error", "6.3, 6.4"),
        ("", "5.8", "error", "no release of torch was built for ROCm 5.8"),
        ("==99.0", "7.2", "note", "newer than the matrix knows"),
        ("==1.13.1", "5.2", "note", "older than the matrix knows, which begins with torch"),
        ("", "5.1.1", "note", "older than the matrix knows"),
        (">=1.13", "5.2", "note", "older than the matrix knows"),
        ("==2.5.1", "5.2", "error", "no release of torch was built for ROCm 5.2"),
        ("==1.13.1", "6.3", "error", "ROCm 6.3 carries torch 2.7.0"),
        ("", "5.9", "error", "torch was built for ROCm"),
    ],
)
def test_pairs_that_were_never_built(torch, rocm, severity, words):
    ((what, truth),) = pair(torch, rocm)
    assert (what, words in truth) == (severity, True), truth
