"""Weight files of a model folder: one model.safetensors, or shards with an index."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from trainer.runtime.errors import TrainerError

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD_BYTES = 5 * 10**9
POINTER, LARGEST_POINTER = b"version https://git-lfs", 1024
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def weight_map(folder: Path) -> dict[str, str]:
    """Return the file name of each tensor. A whole file counts before an index, as transformers has it.

    Raises:
        TrainerError: RM700 where there are no weights or a shard is missing, RM702 where a file is damaged.
    """
    if (folder / WHOLE).is_file():
        return dict.fromkeys(names_in(folder / WHOLE), WHOLE)
    if (folder / INDEX).is_file():
        return _from_index(folder)
    raise TrainerError("RM700", what=f"neither {WHOLE} nor {INDEX}", where=str(folder), why=_what_is_there(folder))


def _what_is_there(folder: Path) -> str:
    """Return what of weights is there instead, as the reason why none are read."""
    pickled = sorted(path.name for path in folder.glob("pytorch_model*.bin"))
    if pickled:
        return f"{pickled[0]} is a pickle, which may run code when read, and is not opened"
    others = sorted(path.name for path in folder.glob("*.safetensors"))
    if any(name.startswith("model-") for name in others):
        return f"{others[0]} is one of several shards, and the index that lists them is not there"
    if others:
        return f"{others[0]} is there, which has another name; model.safetensors is read"
    ggufs = sorted(path.name for path in folder.glob("*.gguf"))
    return f"{ggufs[0]} is for llama.cpp; training starts from safetensors" if ggufs else ""


def _from_index(folder: Path) -> dict[str, str]:
    index = read_json(folder / INDEX, code="RM702")
    mapping = index.get("weight_map")
    if not isinstance(mapping, dict) or not all(isinstance(name, str) for name in mapping.values()):
        raise TrainerError("RM702", what=f"{INDEX} has no valid weight_map", where=str(folder))
    for name in sorted(set(mapping.values())):
        if Path(name).name != name:
            raise TrainerError("RM702", what=f"{INDEX} names a file outside the folder: {name}", where=str(folder))
        if not (folder / name).is_file():
            many = sum(file == name for file in mapping.values())
            raise TrainerError("RM700", what=f"shard {name} is missing; it holds {many} tensors", where=str(folder))
    return {str(name): str(file) for name, file in mapping.items()}


COPY_AGAIN = "Correct the file, or copy it again from where the model comes from."


def read_json(path: Path, *, code: str) -> dict[str, Any]:
    """Return a JSON object from a file.

    Raises:
        TrainerError: RM700 where it is missing, `code` where it is no JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TrainerError("RM700", what=f"{path.name} is missing", where=str(path.parent)) from None
    except (ValueError, RecursionError) as error:
        what = f"{path.name} is not valid JSON"
        raise TrainerError(code, what=what, where=str(path), why=str(error), next=COPY_AGAIN) from None
    if not isinstance(content, dict):
        raise TrainerError(code, what=f"{path.name} holds no JSON object", where=str(path), next=COPY_AGAIN)
    return content


def names_in(path: Path) -> list[str]:
    """Return the names of a file's tensors.

    Raises:
        TrainerError: RM702 for a damaged file.
    """
    try:
        with safe_open(path, framework="pt") as opened:
            return list(opened.keys())
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(path, error) from None


def tensors(folder: Path, mapping: Mapping[str, str]) -> Iterator[tuple[str, Tensor]]:
    """Yield each tensor's name and value, file by file, on the CPU.

    Raises:
        TrainerError: RM702 for a damaged file, or one that lacks a tensor that the index puts there.
    """
    for file in sorted(set(mapping.values())):
        path = folder / file
        try:
            with safe_open(path, framework="pt") as opened:
                there = set(opened.keys())
                for name in (name for name, holder in mapping.items() if holder == file):
                    if name not in there:
                        raise TrainerError("RM702", what=f"tensor {name} is not in {file}", where=str(folder))
                    yield name, _computable(opened.get_tensor(name), name, path)
        except (SafetensorError, OSError, ValueError) as error:
            raise _damaged(path, error) from None


def _computable(value: Tensor, name: str, path: Path) -> Tensor:
    """Return a tensor.

    Raises:
        TrainerError: RM702 for NaN and infinity, RM703 for numbers that need a scale, as of quantised models.
    """
    if value.dtype not in DTYPES:
        what = f"{name} holds {str(value.dtype).removeprefix('torch.')}, which without a scale is no weight"
        next = "Give the model in 16 or 32 bits; --adapter qlora quantises it itself."
        raise TrainerError("RM703", what=what, where=str(path), next=next)
    require_finite(value, name, path)
    return value


def require_finite(value: Tensor, name: str, path: Path) -> None:
    """Raise TrainerError RM702 for a tensor with NaN or infinity, from which nothing can be trained.

    Args:
        value: weights.
        name: name of the tensor.
        path: file, or folder, that it is from.
    """
    if value.numel() == 0 or value.dtype not in DTYPES:
        return
    if not torch.stack(torch.aminmax(value.detach())).isfinite().all():  # both are NaN if one is
        count = int((~value.isfinite()).sum())
        what = f"{name} holds NaN or infinity in {count:,} of {value.numel():,} numbers"
        next = "Copy the file again; if the source has them, too, take the weights from before its training diverged."
        raise TrainerError("RM702", what=what, where=str(path), next=next)


def _damaged(path: Path, error: Exception) -> TrainerError:
    size = path.stat().st_size if path.exists() else 0
    what = f"{path.name} ({size} bytes) cannot be read"
    if 0 < size < LARGEST_POINTER and path.read_bytes().startswith(POINTER):
        pull = f"Run `{shlex.join(['git', '-C', str(path.parent), 'lfs', 'pull'])}`."
        return TrainerError(
            "RM702", what=what, where=str(path), why="it is a pointer of Git LFS in place of the file", next=pull
        )
    return TrainerError("RM702", what=what, where=str(path), why=str(error))


def write(folder: Path, weights: Mapping[str, Tensor], *, shard_bytes: int = SHARD_BYTES) -> list[str]:
    """Write weights as one file, or as shards of at most `shard_bytes` (a larger tensor has its own) with an index.

    Returns the names of the files.

    Args:
        folder: existing folder.
        weights: tensors by name.
        shard_bytes: most bytes of one file.
    """
    groups = _groups(weights, shard_bytes)
    if len(groups) == 1:
        _save(folder / WHOLE, weights)
        return [WHOLE]
    names = [f"model-{number:05d}-of-{len(groups):05d}.safetensors" for number in range(1, len(groups) + 1)]
    for name, group in zip(names, groups, strict=True):
        _save(folder / name, {each: weights[each] for each in group})
    total = sum(value.numel() * value.element_size() for value in weights.values())
    holders = {each: name for name, group in zip(names, groups, strict=True) for each in group}
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(holders.items()))}
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    return [*names, INDEX]


def _groups(weights: Mapping[str, Tensor], shard_bytes: int) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    filled = 0
    for name, value in weights.items():
        size = value.numel() * value.element_size()
        if groups[-1] and filled + size > shard_bytes:
            groups.append([])
            filled = 0
        groups[-1].append(name)
        filled += size
    return groups


def _save(path: Path, weights: Mapping[str, Tensor]) -> None:
    save_file({name: value.contiguous() for name, value in weights.items()}, path, metadata={"format": "pt"})
