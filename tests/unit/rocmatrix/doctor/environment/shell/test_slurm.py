"""Slurm scripts: several tasks need a start on each."""

import pytest

from rocmatrix.doctor.environment.shell.slurm import findings


@pytest.mark.parametrize(
    ("head", "code", "found"),
    [
        ("#SBATCH --nodes=2", "python train.py", True),
        ("#SBATCH -N 4", "torchrun --nnodes 4 train.py", True),
        ("#SBATCH --ntasks-per-node=8", "exec python3 train.py", True),
        ("#SBATCH --nodes=2", "srun python train.py", False),
        ("#SBATCH --nodes=2", "# srun is not used\npython train.py", True),
        ("#SBATCH --nodes=2", "for n in $NODES; do ssh $n python train.py & done\npython a.py", False),
        ("#SBATCH --nodes=1\n#SBATCH --ntasks=1", "python train.py", False),
        ("#SBATCH --nodes=$N", "python train.py", False),
        ("#SBATCH --nodes=2", "./train", False),
        ("#SBATCH --ntasks=4\n#SBATCH --nodes=1", "torchrun --standalone --nproc-per-node=4 train.py", False),
        ("#SBATCH --ntasks=4\n#SBATCH --nodes=1", "python train.py", True),
        ("#SBATCH -n 32\n#SBATCH -N 1\n#SBATCH --gres=dcu:4", "python train.py", False),  # tasks that are cores
        ("#SBATCH -n 4\n#SBATCH -N 1\n#SBATCH --gres=gpu:mi250:4", "python train.py", True),
        ("#SBATCH -N 2\n#SBATCH -n 32\n#SBATCH --gres=dcu:4", "python train.py", True),
        ("#SBATCH --nodes=2", "deepspeed --hostfile=$HOSTS --num_gpus 8 train.py", False),
        ("#SBATCH --nodes=2", "deepspeed --num_gpus 8 train.py", True),
        ("", "python train.py", False),
    ],
)
def test_several_tasks_without_srun_run_on_the_first_node(head, code, found):
    rows = list(findings(f"#!/bin/bash\n{head}\n{code}\n", "job.sh"))
    rows = [row for row in rows if row.rule == "slurm-without-srun"]
    assert len(rows) == found
    assert all(row.where == "job.sh:2" for row in rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#SBATCH -N 1\npython a.py\n", [("slurm-without-shebang", "error", 1)]),
        ("\n#!/bin/bash\n#SBATCH -N 1\n", [("slurm-without-shebang", "error", 1)]),
        ("#!/bin/bash\n#SBATCH -N 1\n\n# words\n#SBATCH -n 1\nmodule load rocm\n", []),
        ("#!/bin/bash\nmodule load rocm\n#SBATCH -N 1\n", [("slurm-directive-ignored", "warning", 3)]),
        ("#!/bin/bash\nmodule load rocm\n##SBATCH -N 1\n# SBATCH -n 1\n", []),
        ("#!/bin/bash\n#SBATCH --gres=gpu:v100:4\n", [("nvidia-alone", "note", 2)]),
        ("#!/bin/bash\n#SBATCH --gres=gpu:mi250:4\n", []),
        ("#!/bin/bash\ncat > a.sh <<EOF\n#!/bin/bash\n#SBATCH -N 1\nEOF\nsbatch a.sh\n", []),
        ("python a.py\n", []),
        ("", []),
    ],
)
def test_directives_are_read_above_the_first_command_alone(text, expected):
    rows = [(row.rule, row.severity, int(row.where.partition(":")[2])) for row in findings(text, "job.sh")]
    assert rows == expected
