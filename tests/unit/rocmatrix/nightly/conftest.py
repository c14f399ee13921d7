"""What tests of rocmatrix/nightly share."""

import pytest

from tests.fixtures.night_stages import world  # noqa: F401 -- a fixture of this folder


@pytest.fixture
def path(tmp_path):
    return tmp_path / "evidence.db"


@pytest.fixture
def done(tmp_path):
    return tmp_path / "done"
