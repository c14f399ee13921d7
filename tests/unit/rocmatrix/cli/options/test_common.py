"""Companions can be named wherever a cell is built, run, proven or emitted."""

import pytest

from rocmatrix.cli.options.common import WithCompanions
from rocmatrix.cli.options.invoke_tasks import collection
from rocmatrix.jobs.job import refuse_companions
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import CPU

TASKS = ("build", "run", "smoke", "bench", "prove", "train", "submit", "devcontainer", "nightly")


@pytest.mark.parametrize("name", TASKS)
def test_task_of_images_takes_companions(name):
    names = {word for argument in collection()[name].get_arguments() for word in argument.names}
    assert "with" in names


def test_request_holds_the_companions_and_the_python():
    request = WithCompanions(gpu="gfx1100", python="3.13", companions="peft, accelerate,").request
    assert (request.companions, request.python) == (("peft", "accelerate"), "3.13")
    assert str(request) == "--gpu gfx1100 --python 3.13 --with peft,accelerate"


def test_native_run_with_companions_is_refused():
    with pytest.raises(RocmatrixError, match="RM016"):
        refuse_companions(CPU.adding(["peft"]))
    refuse_companions(CPU)
