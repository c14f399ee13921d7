"""One Slurm for all tests of batch jobs."""

import pytest

from tests.fixtures import slurm as harness


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    if lacking := harness.lacking():
        pytest.skip(lacking)
    with harness.slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running
