"""The switch of five owners: what each types, from a clone to a built and run image, in at most five commands.

Dry runs on SYNTHETIC machines: each prints the engine's whole command, and nothing is built, run or trained. The
walks are built and run with STAND-INS in tests/container/test_owners_walks.py.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rocmatrix.containers import engine
from tests.fixtures import machines
from tests.left_out import one_of

ROOT = Path(__file__).resolve().parents[4]
LIGHT = "--data es.csv --output TR --epochs 10 --batch_size 256 --learning_rate 0.001 --hidden_layers 32,16"
SCRIPT = f"{LIGHT} --use_mixed_precision --data_fraction 0.05 --chunk_size 50000 --skip_gpu_cleanup"
# machine, what is typed, words that the output has
WALKS = {
    "two-rx-7900-xt-from-6.2-to-6.3": (
        machines.two_rx_7900_xt,
        [
            ("build --rocm 6.2 --torch 2.5.1 --dry-run", "rocm6.2-torch2.5.1-gfx1100"),
            ("build --rocm 6.3 --dry-run", "rocm6.3-torch2.7.1-gfx1100"),
            (f"train --rocm 6.3 {SCRIPT} --dry-run", "--data-fraction=0.05 dri/renderD128 dri/renderD129 docker"),
        ],
    ),
    "mi50-with-a-script-of-its-own": (
        machines.mi50,
        [
            (
                "build --gpu MI50 --torch 2.4.1+rocm6.0 --with transformers,peft,accelerate --dry-run",
                "rocm6.0-torch2.4.1-gfx906-with-accelerate-peft-transformers",
            ),
            (
                "run --gpu MI50 --torch 2.4.1+rocm6.0 --with transformers,peft,accelerate --code . "
                "--dry-run -- python /code/tune.py",
                "rocm6.0-torch2.4.1-gfx906-with-accelerate-peft-transformers /code renderD128 python",
            ),
        ],
    ),
    "strix-halo-lora": (
        machines.strix_halo,
        [
            ("build --dry-run", "rocm7.2-torch2.12.1-gfx1151"),
            ("train --task lm --model model --adapter lora --data es.csv --dry-run", "--adapter=lora renderD128"),
        ],
    ),
    "guide-of-7.0-with-two-cards": (
        machines.two_rx_7900_xt,
        [
            ("build --gpu 'RX 7900 XT' --rocm 7.0 --allow-unlocked --dry-run", "rocm7.0-torch2.10.0-gfx1100"),
            ("run --rocm 7.0 --dry-run -- python -c 1", "renderD128 renderD129 rocm7.0-torch2.10.0"),
            (f"train --rocm 7.2 {LIGHT} --num_gpus 2 --dry-run", "--ranks=2 rocm7.2"),
        ],
    ),
    "comparison-of-four-versions": (
        machines.two_rx_7900_xt,
        [
            ("build --rocm 5.7 --allow-unlocked --dry-run", "rocm5.7-torch2.3.1-gfx1100"),
            ("build --rocm 6.0 --dry-run", "rocm6.0-torch2.4.1-gfx1100"),
            ("build --rocm 6.3 --dry-run", "rocm6.3-torch2.7.1-gfx1100"),
            ("build --rocm 7.0 --allow-unlocked --dry-run", "rocm7.0-torch2.10.0-gfx1100"),
            ("run --rocm 6.0 --cards 0 --dry-run -- python -c 1", "renderD128 rocm6.0-torch2.4.1"),
        ],
    ),
}


@pytest.fixture
def typed(tmp_path):
    """Return a function that runs `./invokew` with words as typed, in a folder with the owner's files."""
    (tmp_path / "es.csv").write_text("timestamp,open,high,low,close,volume\n")
    (tmp_path / "model").mkdir()
    tree = tmp_path / "TREE"

    def typed(make, words):
        if not tree.exists():
            make(tree)
        program = [sys.executable, "-P", str(ROOT / "rocmatrix/cli/program.py"), "--search-root", str(ROOT)]
        known = {"ROCMATRIX_SIMULATED": str(tree), "ROCMATRIX_EVIDENCE": str(tmp_path / "evidence.db")}
        # on a machine without an engine `train` would run natively
        where = ["--in", "container"] if words.startswith("train") and engine.obstacle() else []
        command = [*program, *shlex.split(words), *where]
        return subprocess.run(
            command, cwd=tmp_path, env=os.environ | known, capture_output=True, text=True, check=False
        )

    return typed


@pytest.mark.parametrize("owner", one_of(WALKS, 2))
def test_walk_of_an_owner_reaches_a_run_in_five_commands(typed, owner):
    make, walk = WALKS[owner]
    assert len(walk) <= 5
    assert walk[-1][0].startswith(("run", "train"))
    for words, expected in walk:
        done = typed(make, words)
        assert done.returncode == 0, f"./invokew {words}\n{done.stdout}{done.stderr}"
        missing = [part for part in expected.split() if part not in done.stdout + done.stderr]
        assert missing == [], f"./invokew {words}\n{done.stdout}{done.stderr}"


def test_unlocked_version_names_the_command_that_locks_it(typed):
    done = typed(machines.two_rx_7900_xt, "build --rocm 7.0 --dry-run")
    assert done.returncode == 2
    assert "./invokew lock --cell rocm7.0-torch2.10.0-gfx1100" in done.stderr


def test_command_without_dashes_before_it_is_shown_with_them(typed):
    done = typed(machines.mi50, "run --gpu MI50 python /code/tune.py")
    assert (done.returncode, "./invokew run --gpu MI50 -- python" in done.stderr) == (2, True)
