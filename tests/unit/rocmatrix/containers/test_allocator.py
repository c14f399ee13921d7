"""Growing segments are set under the name that a torch reads, and refused where it has none."""

import pytest

from rocmatrix.containers.allocator import expandable_segments
from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs import job
from rocmatrix.jobs.programs import TRAIN
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import sysfs
from tests.fixtures.cells import MATRIX

NEW, OLD, CPU = (
    MATRIX.cell(name) for name in ("rocm7.2-torch2.12.1-gfx1100", "rocm6.3-torch2.7.1-gfx1100", "cpu-torch2.13.0")
)


def test_name_is_the_one_that_counts_first_and_has_its_source():
    variable = expandable_segments(MATRIX, NEW)
    assert (variable.name, variable.content) == ("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    assert "195202" in variable.source


@pytest.mark.parametrize("cell", [OLD, CPU], ids=lambda cell: cell.name)
def test_torch_without_them_is_refused(cell):
    with pytest.raises(RocmatrixError, match="RM405"):
        expandable_segments(MATRIX, cell)


@pytest.mark.parametrize(("requested", "there"), [(True, True), (False, False)])
def test_allocator_setting_is_set_on_request_only(tmp_path, requested, there):
    job_request = job.JobRequest(
        program=TRAIN, request=Request(cell=NEW.name), where="container", options={}, dry_run=True,
        expandable_segments=requested,
    )  # fmt: skip
    made = job.container_job(
        job_request, cell=NEW, hardware=read_hardware(sysfs.two_rx_7900_xt(tmp_path)), image="rocmatrix:test",
        variables=job.allocator_of(job_request, matrix=MATRIX, cell=NEW),
    )  # fmt: skip
    assert ("PYTORCH_ALLOC_CONF=expandable_segments:True" in made.summary) == there
