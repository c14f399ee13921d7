"""GGUF files of `gguf` read by llama.cpp itself: its log-probabilities next to ours.

    python -m benchmarks.gguf_llama_cpp

Tiny decoders of random weights with the byte tokenizer, F16 and Q8_0, on this CPU. Compared: the log-probability of
each token after a prompt of token ids, as a share of the spread of ours. Needs the packages gguf and xllamacpp, which
holds llama.cpp; neither is in a lock. Results: benchmarks/results/gguf_llama_cpp.json.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from trainer.analysis.language.gguf_file import export  # noqa: E402
from trainer.analysis.language.loading import load  # noqa: E402
from trainer.data.tokens.tokenizer import ByteTokenizer  # noqa: E402
from trainer.models.decoder.model import Decoder  # noqa: E402
from trainer.models.pretrained.families import decoder_config  # noqa: E402
from trainer.models.pretrained.folder import Pretrained, write  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "gguf_llama_cpp.json"
SHAPE = {
    **{"vocab_size": 320, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "head_dim": 32},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64},
}
ROPES: dict[str, dict[str, Any]] = {
    "": {},
    ", linear scaling": {"rope_type": "linear", "factor": 4.0},
    ", Llama 3's scaling": {
        **{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        "original_max_position_embeddings": 16,
    },
    ", YaRN": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
}
CASES = [("llama", rope) for rope in ROPES] + [("mistral", ""), ("qwen2", ""), ("qwen2", ", YaRN"), ("qwen3", "")]
PROMPT = [1, 5, 9, 20, 31, 7, 99, 100, 200, 250, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74]
TOLERANCE = {"f16": 5e-3, "q8_0": 5e-2}  # of the spread; the cache of keys and values is in 16 bits there


def base_folder(raw: dict[str, Any], folder: Path) -> Path:
    """Write a model of random weights with the byte tokenizer; vectors are drawn, too: norms of 1 would prove little.

    Args:
        raw: content of config.json.
        folder: to be made.
    """
    model = Decoder(decoder_config(raw))
    model.initialize(0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=0.1)
    write(folder, Pretrained(model=model, raw=raw))
    for name, content in ByteTokenizer().files().items():
        (folder / name).write_bytes(content)
    return folder


def theirs(path: Path) -> tuple[list[int], dict[int, float]]:
    """Return a prompt, and llama.cpp's log-probability of each token that may follow it.

    The prompt is the longest end of PROMPT after which no stop token comes first: of one nothing is reported.
    """
    import xllamacpp  # type: ignore

    given = xllamacpp.CommonParams()
    given.model.path, given.n_ctx, given.warmup, given.n_gpu_layers = str(path), 256, False, 0
    given.fit_params, given.cpuparams.n_threads, given.verbosity = False, 1, 0
    server = xllamacpp.Server(given)
    for begin in range(len(PROMPT)):
        request = {"prompt": PROMPT[begin:], "n_predict": 1, "logprobs": 400, "temperature": -1, "samplers": []}
        found = server.handle_completions(request)
        logs = (found if isinstance(found, dict) else json.loads(found))["choices"][0]["logprobs"]
        if logs is not None:
            return PROMPT[begin:], {each["id"]: each["logprob"] for each in logs["content"][0]["top_logprobs"]}
    raise ValueError("a stop token follows every prompt")


def compared(family: str, rope: str, kind: str) -> dict[str, Any]:
    """Return how far llama.cpp's log-probabilities are from ours.

    Args:
        family: llama, mistral, qwen2 or qwen3.
        rope: a key of ROPES.
        kind: f16 or q8_0.
    """
    raw: dict[str, Any] = {**SHAPE, "model_type": family}
    if ROPES[rope]:
        raw["rope_parameters"] = {"rope_theta": 10000.0, **ROPES[rope]}
    with tempfile.TemporaryDirectory() as temporary:
        loaded = load(base_folder(raw, Path(temporary) / "base"))
        export(loaded, Path(temporary) / "model.gguf", kind=kind)
        prompt, found = theirs(Path(temporary) / "model.gguf")
    with torch.no_grad():
        ours = loaded.made.model(torch.tensor([prompt]))[0, -1].log_softmax(-1)
    spread = (ours.max() - ours.min()).item()
    error = max(abs(ours[number].item() - value) for number, value in found.items()) / spread
    return {
        "prompt": len(prompt),
        "tokens": len(found),
        "error": error,
        "equal": error <= TOLERANCE[kind] and len(found) == len(ours),
    }


def main() -> None:
    """Compare all cases, print a line each, and write the results."""
    results: dict[str, Any] = {"xllamacpp": importlib.metadata.version("xllamacpp"), "cases": {}}
    for family, rope in CASES:
        for kind in ("f16", "q8_0"):
            name = f"{family}{rope}, {kind}"
            results["cases"][name] = found = compared(family, rope, kind)
            print(f"{name}: {found}", flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
