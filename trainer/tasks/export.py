"""A trained model as files that other programs read: model.pt, model.safetensors, and ONNX if asked."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import io
import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.runtime.errors import TrainerError

if TYPE_CHECKING:
    from torch import Tensor, nn

NEEDS = {"onnx": ("onnx", "onnxscript")}
OPSET = 18
CHECKED_ROWS = 64


def require(formats: Sequence[str]) -> None:
    """See before training that the formats can be written after it.

    Raises:
        TrainerError: RM549, naming the package that is missing.
    """
    for each in formats:
        missing = [package for package in NEEDS[each] if importlib.util.find_spec(package) is None]
        if missing:
            raise TrainerError("RM549", what=f"--export {each} needs {' and '.join(missing)}, not installed here")


def files(model: nn.Module, record: dict[str, Any], formats: Sequence[str] = ()) -> dict[str, bytes]:
    """Return the files of a trained model by name; `record` is metadata.json's content, and learns of the exports.

    Args:
        model: trained network on the CPU.
        record: content of metadata.json; receives facts on the exports.
        formats: values of `--export`.

    Raises:
        TrainerError: RM549 where torch's exporter refuses the network.
    """
    import safetensors.torch

    weights = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    result = {
        "model.pt": pickled(weights),
        # One constant entry: a clock or a path would change the bytes, and several entries have no fixed order.
        "model.safetensors": safetensors.torch.save(weights, metadata={"format": "pt"}),
    }
    if "onnx" in formats:
        result["model.onnx"] = onnx(model, record)
        record["metrics"]["onnx"] = compare_onnx(
            result["model.onnx"], deployable(model, record), record["model"].get("embeddings", [])
        )
    return result


def pickled(weights: Mapping[str, Tensor]) -> bytes:
    """Return the bytes that `torch.save` writes for `weights`."""
    import torch

    buffer = io.BytesIO()
    torch.save(weights, buffer)
    return buffer.getvalue()


def deployable(model: nn.Module, record: Mapping[str, Any]) -> nn.Module:
    """Return a network from features in their own units, (rows, features), to forecasts in theirs, (rows, 1).

    For classes it gives their probabilities, (rows, classes). Categories come as codes, as metadata.json states.

    It is a copy on the CPU; scaling before and after the model is part of it.
    """
    import copy

    import torch
    from torch import nn

    class Deployable(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = copy.deepcopy(model).cpu().float().eval()
            self.inputs, self.target = scaling(record["scaler"]), scaling(record["target"])  # (2, features), (2,)

        def forward(self, features: Tensor) -> Tensor:
            outputs: Tensor = self.network((features - self.inputs[0]) / self.inputs[1])
            if record["target"].get("classes"):
                return outputs.softmax(dim=1)
            return outputs * self.target[1] + self.target[0]

    def scaling(of: Mapping[str, Any]) -> Tensor:
        return torch.tensor([of["mean"], of["std"]])

    return Deployable().eval()


def onnx(model: nn.Module, record: Mapping[str, Any]) -> bytes:
    """Return the deployable model as ONNX, for any number of rows.

    Raises:
        TrainerError: RM549 where torch's exporter refuses the network.
    """
    import torch

    network, example = deployable(model, record), torch.zeros(2, len(record["features"]))
    try:
        with tempfile.TemporaryDirectory() as folder, _quietly():
            path = Path(folder) / "model.onnx"
            _export(network, example, path)
            return path.read_bytes()
    except Exception as error:  # the exporter's errors have no common class
        first = (str(error).splitlines() or [""])[0]
        what = f"torch {torch.__version__} refused the network"
        raise TrainerError("RM549", what=what, why=f"{type(error).__name__}: {first}") from error


def _export(network: nn.Module, example: Tensor, path: Path) -> None:
    """Write ONNX with any number of rows: by torch.export, or in versions before 2.6 by tracing."""
    import torch

    words: dict[str, Any] = {"input_names": ["features"], "output_names": ["forecast"], "opset_version": OPSET}
    if _version(torch.__version__) >= (2, 6):
        shapes = ({0: torch.export.Dim("rows", min=1)},)
        program = torch.onnx.export(network, (example,), dynamo=True, dynamic_shapes=shapes, verbose=False, **words)
        assert program is not None
        program.save(path)
    else:
        axes = {"features": {0: "rows"}, "forecast": {0: "rows"}}
        torch.onnx.export(network, (example,), path, dynamic_axes=axes, **words)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep the exporter's notes on packages that it looked for, and on its own deprecations, from the user."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def compare_onnx(content: bytes, network: nn.Module, embeddings: Sequence[Mapping[str, int]] = ()) -> dict[str, Any]:
    """Return how far onnxruntime is from torch on made-up rows, or that it is not installed and was not run.

    Args:
        content: the ONNX file.
        network: the network that it was made from.
        embeddings: place and number of values of each categorical column.
    """
    import torch

    if importlib.util.find_spec("onnxruntime") is None:
        return {"checked_with": None, "why": "onnxruntime is not installed, so the file was written and not run"}
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    width = session.get_inputs()[0].shape[1]
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(CHECKED_ROWS, width, generator=generator)
    for each in embeddings:
        rows[:, each["column"]] = torch.randint(each["values"], (CHECKED_ROWS,), generator=generator).float()
    (answer,) = session.run(None, {"features": rows.numpy()})
    with torch.no_grad():
        difference = (torch.from_numpy(answer) - network(rows)).abs().max().item()
    version = importlib.metadata.version("onnxruntime")
    return {"checked_with": f"onnxruntime {version}", "rows": CHECKED_ROWS, "largest_difference": difference}


def _version(text: str) -> tuple[int, int]:
    major, minor, *_ = text.split(".")
    return int(major), int(minor)
