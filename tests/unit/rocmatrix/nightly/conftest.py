"""What tests of rocmatrix/nightly share."""

import pytest


@pytest.fixture
def path(tmp_path):
    return tmp_path / "evidence.db"


@pytest.fixture
def done(tmp_path):
    return tmp_path / "done"
