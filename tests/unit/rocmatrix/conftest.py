"""A package index for tests of what resolves, fetches and locks wheels."""

import os

import pytest

from tests.fixtures.index import Index


@pytest.fixture
def python_index(tmp_path, monkeypatch):
    """Return an index of STAND-IN wheels, the only one the real pip is configured with."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    index = Index(tmp_path / "index")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    return index
