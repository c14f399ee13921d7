"""The commands evaluate, generate, chat, merge, gguf and show-data: events for programs, text for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from trainer.analysis.language.evaluation import evaluate as measure
from trainer.analysis.language.generation import Sampling, answer, chat_prompt
from trainer.analysis.language.loading import Loaded, load
from trainer.models.adapters.lora import adapters_disabled
from trainer.runtime.events import emit, say

MOST_SHOWN = 10  # findings on the terminal; the page has all


def evaluate(*, model: Path, data: Path, base: Path | None = None, sequence: int = 256) -> int:
    """Report loss, perplexity and bits per byte on a text: of an adapter also those of its base.

    Args:
        model: folder of a model or an adapter.
        data: text file.
        base: folder of an adapter's base; None for the recorded one.
        sequence: tokens of a window.
    """
    loaded = load(model, base)
    figures = both(loaded, lambda: measure(loaded, data, sequence=sequence))
    for name, values in figures.items():
        emit("evaluation", model=name, data=data.name, sequence=sequence, **values)
        words = f"perplexity {values['perplexity']:,.2f}, {values['bits_per_byte']:.3f} bits per byte"
        say(f"{name:<7} loss {values['loss']:.4f}, {words} on {values['tokens']:,} tokens of {data.name}")
    return 0


def generate(*, model: Path, prompt: str, base: Path | None = None, **sampling: Any) -> int:
    """Print what follows a prompt: of an adapter the base's text, too.

    Args:
        model: folder of a model or an adapter.
        prompt: text to continue.
        base: folder of an adapter's base; None for the recorded one.
        sampling: fields of `Sampling`.
    """
    loaded, how = load(model, base), Sampling(**sampling)
    state_length(loaded, prompt)
    for name, text in both(loaded, lambda: answer(loaded, prompt, how)).items():
        emit("generated", model=name, text=text)
        say(f"{name + ':':<7} {text}")
    return 0


def chat(*, model: Path, base: Path | None = None, lines: Iterable[str] | None = None, **sampling: Any) -> int:
    """Answer each line of the standard input; an adapter's base answers the same conversation in addition.

    Args:
        model: folder of a model or an adapter.
        base: folder of an adapter's base; None for the recorded one.
        lines: messages of the user; None for standard input.
        sampling: fields of `Sampling`.
    """
    loaded, how = load(model, base), Sampling(**sampling)
    histories: dict[str, list[dict[str, str]]] = {}
    chat_prompt(loaded, [{"role": "user", "content": "?"}])  # a model without a template is refused before any line
    if lines is None and sys.stdin.isatty():
        say("Type a line and press Enter; Ctrl-D ends the conversation.")
    for line in lines if lines is not None else sys.stdin:
        if not line.strip():
            continue

        def reply(name: str, question: str = line.strip()) -> str:
            messages = histories.setdefault(name, [])
            messages.append({"role": "user", "content": question})
            if name != "base":
                state_length(loaded, chat_prompt(loaded, messages))
            text = answer(loaded, chat_prompt(loaded, messages), how, rendered=True)
            messages.append({"role": "assistant", "content": text})
            return text

        for name, text in named(loaded, reply).items():
            emit("answer", model=name, text=text)
            say(f"{name + ':':<7} {text}")
    return 0


def merge(*, model: Path, output: Path, base: Path | None = None) -> int:
    """Write an adapter and its base as one model.

    Args:
        model: folder of the adapter.
        output: folder to write.
        base: folder of its base; None for the recorded one.
    """
    from trainer.analysis.language.merging import merge_to

    merged = merge_to(load(model, base), output)
    emit("merged", **merged)
    apart = f"logits differ by {merged['largest_difference']:.2g} of the largest on {merged['tokens']} tokens"
    say(f"merged  {merged['folder']}; {apart}")
    return 0


def gguf(*, model: Path, output: Path, base: Path | None = None, kind: str = "q8_0") -> int:
    """Write the model, an adapter merged, as a GGUF file.

    Args:
        model: folder of a model or an adapter.
        output: file to write.
        base: folder of an adapter's base; None for the recorded one.
        kind: number format of the weights, such as "q8_0".
    """
    from trainer.analysis.language.gguf_file import export
    from trainer.models.adapters.lora import merge as merge_weights

    loaded = load(model, base)
    merge_weights(loaded.made.model)
    written = export(loaded, output, kind=kind)
    emit("exported", **written)
    again = f"read again: off by at most {written['largest_error']:.2g} of a tensor's largest value"
    say(f"gguf    {written['file']}: {written['tensors']} tensors, {written['bytes']:,} bytes, {kind}; {again}")
    return 0


def show_data(*, data: Path, output: Path | None = None, **settings: Any) -> int:
    """Write the page on a file's rows; findings do not end it, so that all of them can be read at once.

    Args:
        data: JSON lines or text.
        output: HTML file to write; None for `<data>.tokens.html` in the current folder.
        settings: keywords of `inspection.inspect`.
    """
    from trainer.analysis.language.data_page import html
    from trainer.analysis.language.inspection import inspect
    from trainer.storage.output_file import require_output, write_whole

    place = output or Path(f"{data.name}.tokens.html")
    require_output(place, "--output", {"--data": data})
    names = dict(each.split("=", 1) for each in settings.pop("rename", ()))
    seen = inspect(data, names=names, **settings)
    write_whole(place, html(seen).encode(errors="backslashreplace"))
    counts = {"rows": seen.rows, "usable": seen.usable, "tokens": seen.tokens, "trained": seen.trained}
    emit("shown", file=str(place), findings=len(seen.findings), **counts)
    for finding in seen.findings[:MOST_SHOWN]:
        say(f"{finding.code} {finding.where}: {finding.what}; {finding.outcome}")
    if len(seen.findings) > MOST_SHOWN:
        say(f"and {len(seen.findings) - MOST_SHOWN:,} more findings in the page")
    say(f"data    {seen.usable:,} of {seen.rows:,} rows can be trained on, {seen.trained:,} of {seen.tokens:,} tokens")
    say(f"page    {place}")
    return 0


def state_length(loaded: Loaded, prompt: str) -> None:
    """Print where a prompt has more tokens than the model was made for: rotary positions have no end of their own."""
    most = loaded.made.raw.get("max_position_embeddings")
    count = len(loaded.tokenizer.encode(prompt).ids)
    if isinstance(most, int) and count > most:
        say(f"note    {count:,} tokens of prompt are more than the {most:,} that the model is made for")


def both(loaded: Loaded, result: Callable[[], Any]) -> dict[str, Any]:
    """Return the result of the base and of the tuned model; of the model alone where there is no adapter."""
    return named(loaded, lambda name: result())


def named(loaded: Loaded, result: Callable[[str], Any]) -> dict[str, Any]:
    """Return `result` of each name: base with the adapter off, and tuned; or model."""
    if not loaded.adapted:
        return {"model": result("model")}
    with adapters_disabled(loaded.made.model):
        base = result("base")
    return {"base": base, "tuned": result("tuned")}
