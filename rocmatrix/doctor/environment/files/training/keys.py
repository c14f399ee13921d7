"""Keys of a training's settings that fail, or do nothing, on an AMD card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from rocmatrix.doctor.environment.files.manifests import items, line_of, text
from rocmatrix.doctor.environment.lint_input import FileFinding, Subject

# keys of which a file has all of one row
_FORMS = (
    {"base_model", "datasets"}, {"base_model", "micro_batch_size"}, {"base_model", "sequence_len"},
    {"model_name_or_path", "stage"}, {"model_name_or_path", "finetuning_type"},
    {"compute_environment", "distributed_type"}, {"per_device_train_batch_size", "learning_rate"},
    {"zero_optimization"}, {"train_micro_batch_size_per_gpu"},
)  # fmt: skip
_YES = ("true", "yes", "on", "1")
_ATTENTION = ("flash_attention", "xformers_attention", "sdp_attention", "flex_attention", "eager_attention")
_FLASH = {"flash_attn": ("fa2",), "attn_implementation": ("flash_attention_2",), "flash_attention": _YES}


def is_training(keys: set[str]) -> bool:
    """Return whether the keys of a file are those of a training's settings."""
    return any(form <= keys for form in _FORMS)


def of_training(path: Path, root: yaml.Node) -> tuple[Subject, ...]:
    """Return the settings of a training, with the keys that an AMD card is no place for."""
    given = items(root)
    notes = (*_refused(path, given), *_twice(path, given), *_flash(path, given))
    return (Subject(name=str(path), notes=notes),)


def _refused(path: Path, given: Mapping[str, yaml.Node]) -> Iterator[FileFinding]:
    if _on(given.get("tf32")):
        yield FileFinding(
            rule="tf32-refused", where=line_of(path, given["tf32"]), what="tf32: true", severity="warning",
            truth="transformers takes TF32 for there only with a torch of CUDA, and ends the start with ValueError: "
            "--tf32 requires Ampere or a newer GPU arch",
            instead="tf32: false, or leave the key out",
        )  # fmt: skip
    if _on(given.get("xformers_attention")):
        yield FileFinding(
            rule="xformers-on-amd", where=line_of(path, given["xformers_attention"]), what="xformers_attention: true",
            severity="note", truth="xformers of PyPI is built for CUDA; that for ROCm has kernels for Instinct cards",
            instead="sdp_attention: true, which torch brings itself",
        )  # fmt: skip


def _twice(path: Path, given: Mapping[str, yaml.Node]) -> Iterator[FileFinding]:
    """Yield two formats or two kinds of attention, of which a program takes one."""
    formats = [name for name in ("bf16", "fp16") if _on(given.get(name)) or _on(items(given.get(name)).get("enabled"))]
    kinds = [name for name in _ATTENTION if _on(given.get(name))]
    for rows, rule in ((formats, "two-number-formats"), (kinds, "two-kinds-of-attention")):
        if len(rows) > 1:
            yield FileFinding(
                rule=rule, where=line_of(path, given[rows[1]]), what=" and ".join(rows), severity="error",
                truth="they exclude each other, and the program refuses the file", instead=f"{rows[0]} alone",
            )  # fmt: skip


def _flash(path: Path, given: Mapping[str, yaml.Node]) -> Iterator[FileFinding]:
    for name, values in _FLASH.items():
        if text(given.get(name)).lower() in values:
            yield FileFinding(
                rule="flash-attention-of-rocm", where=line_of(path, given[name]), what=f"{name}: {text(given[name])}",
                severity="note",
                truth="flash-attn of PyPI is compiled for CUDA; for ROCm it is built from ROCm/flash-attention, and "
                "on Radeon cards its Triton path has to be chosen",
                instead="FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE at install and run time, or attention of torch (sdpa)",
            )  # fmt: skip
            return


def _on(node: yaml.Node | None) -> bool:
    return text(node).lower() in _YES
