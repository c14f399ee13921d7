"""What tests of trainer/tasks/tables share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.tables import mixed, written


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(mixed(), tmp_path)
