"""Releases of kernels and modules compared by the numbers they begin with."""

import pytest

from rocmatrix.doctor.knowledge import is_within, plain_version


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("6.8.0-63-generic", "6.8.0"),
        ("6.14.0-1010-oem", "6.14.0"),
        ("5.15.167.4-microsoft-standard-WSL2", "5.15.167.4"),
        ("6.12+bpo-amd64", "6.12"),
        ("6", None),
        ("v6.8.0", None),
        ("", None),
        (None, None),
    ],
)
def test_version_is_the_numbers_in_front(release, version):
    assert plain_version(release) == version


@pytest.mark.parametrize(
    ("release", "inside"),
    [("6.8.0-63-generic", True), ("6.9.0", False), ("6.10.1-arch", False), ("6.7.99", False), ("unknown", False)],
)
def test_release_is_within_bounds_by_numbers_and_never_without_any(release, inside):
    assert is_within(release, ">=6.8,<6.9") is inside
