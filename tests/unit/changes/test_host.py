"""Changes to the host program from CONTRIBUTING.md, each made on a copy of the tree by the files of its row alone.

The copy's own program is run then. Rows that are not here are a written walk: their files are checked to exist.
"""

import json
import re
import subprocess
import sys

import pytest

from tests.fixtures import sysfs


def test_doctor_check_added_to_its_topic_is_run_and_documented(change, invokew, run, tmp_path_factory):
    change.add(
        "rocmatrix/doctor/limits.py",
        '\n\n@check("D399", title="A new question", why="a new reason", source="a source")\n'
        "def newest(host: Host) -> Finding:\n"
        '    """D399."""\n    return Finding(code="D399", status="ok", seen="looked")\n',
    )
    machine = tmp_path_factory.mktemp("machine")
    sysfs.two_rx_7900_xt(machine)
    found = json.loads(invokew("doctor", "--json", "--sysfs", str(machine)))["checks"]
    assert [(row["title"], row["seen"]) for row in found if row["code"] == "D399"] == [("A new question", "looked")]
    assert [row["code"] for row in found] == sorted(row["code"] for row in found)
    assert "### D399 A new question" in run("-c", "from rocmatrix.doctor import document; print(document.page([]))")
    change.is_row("a doctor check", name="limits", number=1)


PBS = '''"""A job of OpenPBS, as text."""


def script(name: str, nodes: int) -> str:
    """Return the script."""
    return f"#PBS -N {name}\\n#PBS -l select={nodes}\\n"
'''
PBS_SCHEDULER = '''"""OpenPBS."""

from dataclasses import dataclass

from rocmatrix.jobs.destination import Destination, Submission
from rocmatrix.jobs.schedulers.scheduler import Nodes, Scheduler
from rocmatrix.runtime.option import option


@dataclass(frozen=True, kw_only=True)
class PbsOptions(Nodes):
    """Options of OpenPBS."""

    server: str = option("the server of OpenPBS")


class PbsDestination(Destination):
    """A cluster of OpenPBS."""

    def job(self, submission: Submission):
        """Return the script and its qsub."""
        from rocmatrix.containers.emit import pbs
        from rocmatrix.jobs.runner import Job

        path = submission.job_request.output / "job.pbs"
        text = pbs.script(submission.job_request.options["run"], self.nodes)
        return Job(argv=["qsub", str(path)], environment=None, why="pbs", files={path: text})


SCHEDULER = Scheduler(name="pbs", options=PbsOptions, destination=lambda options: PbsDestination(**options.about_nodes))
'''


def test_scheduler_added_as_text_and_destination_is_submitted_to(change, invokew):
    change.add("rocmatrix/containers/emit/pbs.py", PBS)
    change.add("rocmatrix/jobs/schedulers/pbs.py", PBS_SCHEDULER)
    sent = invokew("submit", "--engine=pbs", "--gpu=cpu", "--run=r", "--nodes=3", "--server=s", "--dry-run")
    assert "#PBS -N r\n#PBS -l select=3\n" in sent
    assert sent.splitlines()[-1].startswith("qsub ")
    help_text = invokew("--help", "submit")
    assert "the server of OpenPBS" in help_text
    assert "--engine={kubernetes,pbs,slurm}" in help_text
    change.is_row("an emitter for another scheduler", name="pbs", number=2)


APPTAINER = '''"""A run spec for Apptainer, as a command."""

from rocmatrix.containers.emit.target import Target

TARGETS = {
    "apptainer": Target(about="an `apptainer exec` command", text=lambda spec, _: f"apptainer exec {spec.image}\\n"),
}
'''


def test_target_of_run_added_as_a_module_is_printed_and_explained(change, invokew):
    change.add("rocmatrix/containers/emit/apptainer.py", APPTAINER)
    change.insert("rocmatrix/cli/commands/run.py", "podman, ", "apptainer, ")
    words = ("run", "--gpu=cpu", "--for=apptainer", "--user=1:1")
    assert invokew(*words).startswith("apptainer exec rocmatrix:cpu-")
    assert "--read-only" in invokew(*words, "--explain")
    assert "apptainer" in invokew("run", "--help")
    change.is_row("a target of `run --for`", name="apptainer", number=2)


def test_right_added_to_run_is_an_option_and_a_capability(change, invokew):
    change.insert(
        "rocmatrix/cli/commands/run.py",
        "    dry_run: bool = option(DRY_RUN, default=False)\n",
        '    with_perf: bool = option("read performance counters", default=False)\n',
    )
    change.insert(
        "rocmatrix/containers/capability.py",
        "FEATURES: Mapping[str, Feature] = {\n",
        '    "perf": Feature(about="counters", settings=lambda _: iter([AddCapability(value="PERFMON", reason="r", '
        'source="s")])),\n',
    )
    assert "--cap-add=PERFMON" in invokew("run", "--gpu=cpu", "--for=docker", "--user=1:1", "--with-perf")
    assert "--cap-add=PERFMON" not in invokew("run", "--gpu=cpu", "--for=docker", "--user=1:1")
    change.is_row("a flag of `run`", name="", number=2)


def test_value_added_to_run_reaches_the_container_by_three_files(change, invokew):
    change.insert(
        "rocmatrix/cli/commands/run.py",
        "    dry_run: bool = option(DRY_RUN, default=False)\n",
        '    shared_gib: int = option("GiB of shared memory", default=0)\n',
    )
    change.insert(
        "rocmatrix/cli/commands/run.py",
        "            features=self.features,\n",
        "            shared_gib=self.shared_gib,\n",
    )
    change.insert("rocmatrix/containers/runspec.py", "    data: Path | None = None\n", "    shared_gib: int = 0\n")
    change.insert(
        "rocmatrix/containers/runspec.py",
        "        *least_privilege.memory(cell, host_bytes=hardware.memory_bytes",
        ", gib=chosen.shared_gib",
    )
    change.insert("rocmatrix/containers/least_privilege.py", "host_bytes: int | None", ", gib: int = 0")
    change.insert(
        "rocmatrix/containers/least_privilege.py",
        'else (GIB, "data loader workers")\n',
        "    shared = gib * GIB or shared\n",
    )
    words = ("run", "--gpu=cpu", "--for=docker", "--user=1:1")
    assert f"--shm-size={1 << 30}" in invokew(*words)
    assert f"--shm-size={2 << 30}" in invokew(*words, "--shared-gib=2")
    change.is_row("a flag of `run`", name="", number=3)


ARCHITECTURE = """
gfx1399:
  family: RDNA 9
  cards: [Radeon RX 9999]
  integrated: true
  matrix_units: [fp16, bf16]
  elf: 0xFE
  generic: gfx13-generic
  autocast: {format: bf16, why: WMMA in bf16}
  per_clock: {fp32: 100, bf16: 1000}
  peaks:
    - {cards: [RX 9999], units: 10, mhz: 2000}
  evidence: {sources: [made for a test], confidence: derived, date: "2026-11-22"}
"""
RENDER = """
from pathlib import Path
from rocmatrix.cli import generated_architectures as tables
from rocmatrix.matrix.loading import load
for path, text in tables.files(load.load(Path.cwd())).items():
    Path(path).write_text(text)
"""
KNOWN = """
from rocmatrix.host.processors import GENERIC, INTEGRATED, NUMBERS
from trainer.device.precision import BEST
from trainer.telemetry.peaks import find
assert (NUMBERS[0xFE], GENERIC["gfx13-generic"], "gfx1399" in INTEGRATED) == ("gfx1399", ("gfx1399",), True)
assert BEST["gfx1399"] == ("bf16", "WMMA in bf16")
assert find("AMD Radeon RX 9999", "gfx1399").flops("bf16") == 1000 * 10 * 2000e6
assert find("AMD Radeon RX 9999", "gfx1100") is None
"""


def test_architecture_added_to_the_yaml_is_known_to_host_and_trainer(change, run):
    change.add("matrix/architectures.yaml", ARCHITECTURE)
    run("-c", RENDER)
    run("-c", KNOWN)
    change.is_row("a card of a known architecture", name="", number=1)
    assert change.files < set(re.findall(r"`(matrix/[\w.]+)`", change.rows["a new architecture"]))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("elf: 0xFE", "elf: 0x41", "gfx1100 and gfx1399: elf 0x41"),
        ("  per_clock: {fp32: 100, bf16: 1000}\n", "", "peaks need per_clock"),
    ],
)
def test_architecture_with_a_mistake_is_refused_by_render(change, tree, old, new, words):
    assert old in ARCHITECTURE
    change.add("matrix/architectures.yaml", ARCHITECTURE.replace(old, new))
    done = subprocess.run([sys.executable, "-c", RENDER], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "RM001" in done.stderr
    assert words in done.stderr


def test_signature_added_to_the_yaml_is_found(change, run):
    change.add(
        "rocmatrix/diagnosis/signatures/kernels.yaml",
        "- id: newest\n  title: A new failure\n  kind: cause\n  area: kernels\n"
        "  match: ['the newest failure of all']\n  sample: the newest failure of all\n"
        "  cause: A test made it.\n  remedy: None.\n"
        '  evidence: {sources: [made for a test], confidence: derived, date: "2026-11-22"}\n  checked: not reached\n',
    )
    found = run(
        "-c",
        "from pathlib import Path\nfrom rocmatrix.diagnosis import signature\n"
        "print([s.id for s in signature.load(Path.cwd()) if s.id == 'newest'])",
    )
    assert "newest" in found
    change.is_row("a diagnosis signature", name="kernels", number=1)


def test_comparison_added_to_the_yaml_is_found(change, run):
    path = "rocmatrix/diagnosis/comparisons/comparisons.yaml"
    change.add(
        path,
        "- id: newest\n  title: A new contradiction\n  kind: cause\n  area: kernels\n"
        "  holds: [kfd_node is known, no_module is known]\n  sample: s\n  healthy: h\n"
        "  cause: A test made it.\n  remedy: None.\n"
        '  evidence: {sources: [made for a test], confidence: derived, date: "2026-11-29"}\n  checked: not reached\n',
    )
    found = run(
        "-c",
        "from pathlib import Path\nfrom rocmatrix.diagnosis.comparisons import forms\n"
        "print([rule.id for rule in forms.load(Path.cwd()).rules if rule.id == 'newest'])",
    )
    assert "newest" in found
    change.is_row("a comparison of two values of a log", name="", number=1)
