"""A job that a real Slurm preempts with a grace time, as sites configure partitions of spare nodes.

Within the grace time Slurm sends SIGTERM to the step alone: the trainer writes its checkpoint and ends, and a batch
script that ended with it would be a failed job. The trainer is a STAND-IN that saves and ends with a status.
"""

import pytest

from rocmatrix.containers.emit.sbatch_script import Batch, native_launcher, sbatch_script
from tests.fixtures import slurm as harness

pytestmark = pytest.mark.slurm

PARTITIONS = """\
PartitionName=spare Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=60
PartitionName=owners Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
"""
TRAINER = """#!/bin/sh
trap 'echo saved; exit 3' TERM
[ "$PLAYS" = fails ] && exit 3
echo begun
while :; do sleep 0.1 & wait $!; done
"""


@pytest.fixture(scope="module")
def spare(tmp_path_factory):
    """Start a Slurm whose owners take the nodes of spare jobs."""
    if lacking := harness.lacking():
        pytest.skip(lacking)
    with harness.slurm(tmp_path_factory.mktemp("spare"), partitions=PARTITIONS) as running:
        yield running


def start(slurm, folder, plays):
    stand_in = folder / "python9"
    stand_in.write_text(TRAINER)
    stand_in.chmod(0o755)
    script = folder / "r.sbatch"
    batch = Batch(name="r", arguments=("train",), log=str(folder / "r-%j.log"))
    script.write_text(sbatch_script(batch, native_launcher(str(stand_in), {"PLAYS": plays})))
    return int(slurm.call("sbatch", "--parsable", str(script)).split()[-1])


def test_job_that_saved_within_a_preemptions_grace_time_is_queued_again(spare, tmp_path):
    number = start(spare, tmp_path, "trains")
    spare.wait(number, "RUNNING")
    log = tmp_path / f"r-{number}.log"
    harness.until(lambda: log.exists() and "begun" in log.read_text(), spare)
    script = tmp_path / "owner.sbatch"
    script.write_text("#!/bin/sh\n#SBATCH --nodes=2 --exclusive --partition=owners --output=/dev/null\nsleep 1\n")
    spare.call("sbatch", "--parsable", str(script))
    waiting = spare.wait(number, "PENDING")
    assert (waiting["Restarts"], "saved" in log.read_text()) == ("1", True)
    spare.call("scancel", str(number))


def test_job_that_fails_without_being_preempted_is_not_queued_again(spare, tmp_path):
    number = start(spare, tmp_path, "fails")
    assert spare.wait(number, "FAILED")["Restarts"] == "0"
