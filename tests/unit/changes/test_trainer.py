"""Changes to the trainer from CONTRIBUTING.md, each made on a copy of the tree by the files of its row alone.

The copy's own program is run then. Rows that are not here are a written walk: their files are checked to exist.
"""

import json

from tests.left_out import long


def test_probe_added_with_its_entry_is_listed(change, run):
    change.add("trainer/diagnostics/probes/single/fresh.py", '"""A new probe."""\n')
    change.insert(
        "trainer/diagnostics/probes/registry.py",
        "PROBES: tuple[Probe, ...] = (\n",
        '    _probe("fresh", 90, "something new holds"),\n',
    )
    assert '"probe": "fresh"' in run("-m", "trainer", "smoke", "--list")
    change.is_row("a probe on one card", name="fresh", number=2)


SECTION = "trainer/config/sections/network.py"
NETWORK = '''"""One wide layer, for a test."""

from torch import nn


def wide(inputs, hidden_layers, outputs=1, **_):
    """Return it."""
    return nn.Sequential(nn.Linear(inputs, 100), nn.ReLU(), nn.Linear(100, outputs))
'''


def test_network_added_with_its_name_is_trained(change, run, tree):
    change.add("trainer/models/wide.py", NETWORK)
    change.insert(SECTION, "NETWORKS = (", '"wide", ')
    options = ("--network=wide", "--epochs=1", "--device=cpu", "--run=r", f"--output={tree / 'runs'}")
    run("-m", "trainer", "train", *options)
    model = json.loads((tree / "runs" / "r" / "metadata.json").read_text("utf-8"))["model"]
    assert model["kind"] == "wide"
    weights = (tree / "runs" / "r" / "model.safetensors").read_bytes()
    assert b'"shape":[1,100]' in weights[: 8 + int.from_bytes(weights[:8], "little")].replace(b" ", b"")
    change.is_row("a kind of network", name="wide", number=2)


SHAPED = '''"""Experts of one layer each, averaged, for a test."""

import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, inputs, outputs, experts):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, inputs, outputs) / inputs)

    def forward(self, rows):
        return (rows @ self.weight).mean(dim=0)


def experts(inputs, hidden_layers, outputs=1, *, experts, **_):
    """Return as many experts as asked for."""
    return Experts(inputs, outputs, experts)
'''
SHAPED_CONFIG = '''@dataclass(frozen=True, kw_only=True)
class ExpertsConfig(MlpConfig):
    """Experts that are averaged."""

    title: ClassVar[str] = "Network: experts"
    experts: Annotated[int, _fixed("how many experts", whole(1, 99))] = 3


'''


@long
def test_network_with_settings_of_its_own_is_trained_stored_and_used(change, run, tree):
    change.add("trainer/models/experts.py", SHAPED)
    change.insert(SECTION, "NETWORKS = (", '"experts", ')
    change.insert(SECTION, '"heads": self.heads}\n\n\n', SHAPED_CONFIG)
    change.insert(SECTION, "    TRANSFORMER: TransformerConfig,\n", '    "experts": ExpertsConfig,\n')
    assert "--experts" in run("-m", "trainer", "train", "--help=all")
    options = ("--network=experts", "--experts=5", "--epochs=1", "--device=cpu", "--run=r", f"--output={tree / 'runs'}")
    run("-m", "trainer", "train", *options)
    model = json.loads((tree / "runs" / "r" / "metadata.json").read_text("utf-8"))["model"]
    assert (model["kind"], model["settings"]) == ("experts", {"experts": 5})
    counted = run("-c", f"from trainer.models.build import size; print(size({model!r}))")
    assert int(counted) == 5 * model["widths"][0]
    sample = "trainer/data/sp500_vix_daily.csv"
    run("-m", "trainer", "predict", f"--model={tree / 'runs' / 'r'}", f"--data={sample}", f"--output={tree / 'f.csv'}")
    assert len((tree / "f.csv").read_text("utf-8").splitlines()) > 100
    change.is_row("a kind of network", name="experts", number=2)


SIGN = '''"""Steps of one size, in the direction against the gradient's sign, for a test."""

import torch


class Sign(torch.optim.SGD):
    """Signs of gradients in place of gradients."""

    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                weight.grad.sign_()
        return super().step(closure)
'''
OPTIMIZER = "trainer/engine/optimizer.py"
MUON_IMPORT = "from trainer.engine.muon import Muon, adamw_step\n"


def test_optimizer_added_with_its_name_takes_the_steps(change, run, tree):
    change.add("trainer/engine/sign.py", SIGN)
    change.insert("trainer/config/choices.py", 'OPTIMIZERS = ("adamw", "adamw8bit", "muon", "adamw-host"', ', "sign"')
    change.insert(OPTIMIZER, "ADAMW, ADAMW_8BIT, MUON, ADAMW_HOST", ", SIGN")
    change.insert(OPTIMIZER, MUON_IMPORT, "from trainer.engine.sign import Sign\n")
    change.insert(OPTIMIZER, "ADAMW_HOST: 0.0", ", SIGN: 0.0")
    change.insert(
        OPTIMIZER,
        "        return muon(model, learning_rate, products=products, spectral=muon_learning_rate)\n",
        "    if name == SIGN:\n        return Sign(model.parameters(), lr=learning_rate)\n",
    )
    assert "sign}" in run("-m", "trainer", "train", "--help")
    options = ("--optimizer=sign", "--max-steps=2", "--device=cpu", "--run=r", f"--output={tree / 'runs'}")
    run("-m", "trainer", "train", *options)
    recipe = (tree / "runs" / "r" / "recipe.yaml").read_text("utf-8")
    assert "optimizer: sign" in recipe
    change.is_row("an optimizer", name="sign", number=3)


SINE_CONFIG = '''"""Settings of sine waves, for a test."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from trainer.config.parsing import whole
from trainer.config.sections.rows import FileConfig
from trainer.config.setting import Flag, OnResume


@dataclass(frozen=True, kw_only=True)
class SineConfig(FileConfig):
    """Settings of sine waves."""

    title: ClassVar[str] = "Sine waves (--task sine)"
    waves: Annotated[int, Flag("number of waves", whole(8), "data", OnResume.FIXED, sparse=True)] = 64
'''
SINE = '''"""The next value of a sine wave from the four before it, for a test."""

from dataclasses import dataclass

import safetensors.torch
import torch
from torch import nn

from trainer.data.loading.placement import TensorPartition
from trainer.models.losses import squared_error_sum
from trainer.tasks.task import NetworkSpec, Partitions


def rows(count, seed, place):
    start = torch.rand(count, 1, generator=torch.Generator().manual_seed(seed))
    wave = torch.sin(start + torch.arange(5)).to(place.device, place.dtype)
    return TensorPartition(inputs=wave[:, :4], targets=wave[:, 4:])


@dataclass(frozen=True, kw_only=True)
class SineTask:
    waves: int
    kind: str = "sine"
    data_name: str = "sine waves"

    @property
    def data_sha256(self):
        return f"{self.waves:064x}"

    @property
    def train_rows(self):
        return self.waves

    def defaults(self, loop, given):
        return {}

    def network(self):
        return NetworkSpec(description={"kind": "line"}, build=lambda: nn.Linear(4, 1))

    def partitions(self, placement):
        train, validation = rows(self.waves, 0, placement), rows(16, 1, placement)
        return Partitions(train=train, validation=validation, feed="device", reason="small")

    def precomputed(self, rows, evaluation):
        return rows

    def loss(self):
        return squared_error_sum

    def batch_weight(self):
        return None

    def evaluate(self, evaluation):
        inputs, targets = rows(16, 2, evaluation).rows(torch.arange(16), evaluation.device)
        return {"test": {"mse": float((evaluation.forward(inputs) - targets).square().mean())}}

    def describe(self, network):
        data = {"name": self.data_name, "sha256": self.data_sha256}
        return {"task": "sine", "data": data, "model": network.description, "sine": {"waves": self.waves}}

    def replay_settings(self):
        return {}

    def files(self, model, record, formats):
        return {"model.safetensors": safetensors.torch.save(model.state_dict())}

    def summary(self, record, trained):
        return {"test": str(record["metrics"]["test"]["mse"])}

    def next_commands(self, record):
        return []
'''
TRAIN_CONFIG = "trainer/config/train.py"


def test_learning_task_added_by_its_interface_is_trained_and_recorded(change, run, tree):
    change.add("trainer/tasks/sine.py", SINE)
    change.add("trainer/config/sections/sine.py", SINE_CONFIG)
    change.insert("trainer/config/choices.py", 'TASKS = ("auto", "regression", "classification", LM', ', "sine"')
    imported = "from trainer.config.sections.sine import SineConfig\n"
    change.insert(
        TRAIN_CONFIG,
        "from trainer.config.sections.run import DistributedConfig, ProvenanceConfig, RunConfig, TelemetryConfig\n",
        imported,
    )
    change.insert(TRAIN_CONFIG, "BY_KIND = (BarsConfig, TableConfig", ", SineConfig")
    change.insert(
        TRAIN_CONFIG,
        "        return TokensConfig\n",
        '    if values.get("task") == "sine":\n        return SineConfig\n',
    )
    change.insert("trainer/tasks/choose.py", "from trainer.config.sections.network import MlpConfig\n", imported)
    change.insert(
        "trainer/tasks/choose.py",
        "folder=config.run.output, loop=config.loop)\n",
        "    if isinstance(config.data, SineConfig):\n        from trainer.tasks.sine import SineTask\n\n"
        "        return SineTask(waves=config.data.waves)\n",
    )
    assert "--waves" in run("-m", "trainer", "train", "--help=all")
    options = ("--task=sine", "--waves=40", "--epochs=2", "--device=cpu", "--run=r", f"--output={tree / 'runs'}")
    done = json.loads(run("-m", "trainer", "train", *options).splitlines()[-1])
    assert (done["event"], done["next"]) == ("done", [])
    record = json.loads((tree / "runs" / "r" / "metadata.json").read_text("utf-8"))
    assert (record["task"], record["sine"]) == ("sine", {"waves": 40})
    assert record["metrics"]["test"] == done["test"]
    change.is_row("a learning task", name="sine", number=5)
