"""What tests of rocmatrix/evidence share."""

import pytest

from rocmatrix.evidence import store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "evidence.db"


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch):
    """A notice that is given once is given anew in each test."""
    monkeypatch.setattr(store, "_reported", set())
