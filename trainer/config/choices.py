"""The words that settings take, each list once: the command line, the recipes and the code read them from here.

Imports nothing, so that `--help` is instant. Where code is typed by the words, the type is here, too.
"""

from __future__ import annotations

from typing import Literal, get_args

# Data: kinds, targets, and what is done about bad rows.
LM = "lm"
TASKS = ("auto", "regression", "classification", LM)
FEATURE_SETS = ("auto", "daily", "intraday", "table")
BAR_TARGETS = ("volatility", "return", "direction")
CLASS_WEIGHTS = ("none", "balanced")
BASELINES = ("auto", "linear", "trees", "none")
BadRowPolicy = Literal["few", "error", "drop", "repair"]
BAD_ROW_POLICIES: tuple[BadRowPolicy, ...] = get_args(BadRowPolicy)
REFUSING: tuple[BadRowPolicy, ...] = ("few", "error")  # of tables, but for words among an input's numbers
MISSING = ("error", "drop", "fill")
IDENTIFIERS = ("leave-out", "keep")
UNKNOWN = ("zero", "error")
JoinOutside = Literal["carry", "drop", "error"]
COLUMN_ROLES = ("date", "time", "open", "high", "low", "close", "volume", "vix_close")

# Conventions of sessions and volume profiles.
BarTime = Literal["begin", "end"]
HalfDays = Literal["us", "none"]
Allocation = Literal["uniform", "close", "proportional"]
Levels = Literal["centre", "low", "high", "outer"]
Rounding = Literal["floor", "nearest", "ceil"]
Rows = Literal["dense", "occupied"]
PocTie = Literal["middle", "middle_upper", "low", "high"]
Expansion = Literal["one", "two"]
ValueTie = Literal["up", "down"]
Reach = Literal["at_least", "more"]

# Rows of tokens.
METHODS = ("auto", "pretrain", "sft", "dpo", "kto")
BAD_RECORDS = ("stop", "drop")
TOO_LONG = ("stop", "drop", "cut")
STOP_TOKEN = ("require", "append")

# Networks.
ACTIVATIONS = {"relu": "ReLU", "gelu": "GELU", "silu": "SiLU", "tanh": "Tanh"}  # as metadata.json has them
NORMS = ("none", "batch", "layer")
ATTENTION_KERNELS = ("flash", "efficient", "math")  # in the order of preference
ATTENTION = ("auto", *ATTENTION_KERNELS)
ADAPTERS = ("none", "lora", "qlora", "peft")
EXPORTS = ("onnx",)
FAST = ("auto", "off", "nondeterministic")
REFERENCES = ("again", "cached")

# Optimizer and loop.
OPTIMIZERS = ("adamw", "adamw8bit", "muon", "adamw-host")
SCHEDULES = ("constant", "cosine", "linear", "wsd", "inverse-sqrt")
WEIGHTS = ("best", "last")
BEST_ON = ("device", "host")

# Execution.
PRECISIONS = ("auto", "fp32", "bf16", "fp16", "fp64")
STEPS = ("auto", "eager", "graph", "direct")
FEEDS = ("auto", "device", "host", "mapped")
COMPILE = ("off", "auto", "on")
GATES = ("auto", "on", "off")
RECOMPUTE = ("off", "selective", "full", "offloaded")

# Ranks.
PARALLEL = ("ddp", "fsdp2", "pipeline", "sequence")
WHOLE = ("ddp", "sequence")  # of these, those by which each rank holds the whole model
PLANNED = ("ddp", "fsdp2")  # those that `plan` counts
COMMS = ("auto", "nccl", "nccl-no-p2p", "gloo", "host")
COMPRESSIONS = ("none", "bf16")

TRACKERS = ("tensorboard", "wandb", "mlflow")
