"""The command plan: memory and time of training a language model on a card that need not be here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from trainer.analysis.language.planning.request import PREFERENCES, PlanRequest, name_of, sharded
from trainer.run.memory_plan.cards import CONTEXT, GIB, Card
from trainer.run.memory_plan.fit import (
    MOST_ROWS,
    SHARES,
    Fit,
    exact_fit,
    first_size,
    fit,
    gib,
    largest_fit,
    longest_row,
    most_tokens,
)
from trainer.run.memory_plan.live_memory import PARTS
from trainer.run.memory_plan.shapes import SHAPES, Program, shape_named
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say


def plan(requested: PlanRequest) -> int:
    """Print a table of what fits, or with one configuration its memory by part; return the exit status.

    Raises:
        TrainerError: RM736, RM738, and RM737 where nothing of it fits.
    """
    card = requested.card()
    programs = requested.programs(card)
    for sentence in requested.notes:
        say(sentence)
    assumed(requested.name, programs[0], card, requested.cards)
    try:
        if requested.step_rows is not None:
            recipe_step(programs[0], card, requested.cards, requested.micro_batch, requested.step_rows)
        elif requested.micro_batch is not None and len(programs) == 1:
            one(
                exact_fit(replace(programs[0], rows=requested.micro_batch), card, cards=requested.cards),
                requested.cards,
                card,
            )
        else:
            table(programs, card, requested.cards, requested.micro_batch)
    finally:  # where nothing of it fits, a shorter row may
        if requested.longest:
            longest(programs, card, requested.cards)
    return 0


def assumed(model: str, program: Program, card: Card, cards: int) -> None:
    """Print what the plan is made of.

    Args:
        model: as the user named it.
        cards: how many cards.
    """
    plain, masked = program.attention
    why = {"yes": "", "flag": " without TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1", "no": " has no fused kernels"}
    attention = f"{plain}, under a mask {masked}"
    if plain == "math":
        attention = f"math, which grows with the square of the sequence: {card.arch}{why[card.fused]}"
    emit(
        "plan",
        model=model,
        gpu=card.name,
        arch=card.arch,
        cards=cards,
        parallel=None if cards == 1 else "fsdp2" if program.shards > 1 else "ddp",
        memory_bytes=card.memory,
        budget_bytes=card.budget,
        attention=list(program.attention),
        precision=program.precision,
        sequence=program.sequence,
        measured_on_this_card=False,
    )
    shape = "" if model in SHAPES else shape_named(model)
    of = f", shape {shape}," if shape and program.raw is SHAPES[shape] else ""
    say(f"plan    {model}{of} on {cards} x {card.name} ({card.arch}), {card.why}: {gib(card.budget)} GiB for tensors")
    say(f"        {gib(CONTEXT)} GiB are taken to be the runtime's; attention: {attention}")
    if program.precision == "bf16" and card.precision == "fp16":  # as in a recipe for other cards
        say(
            f"        {card.arch} has no bf16 in hardware, and fp16 instead: --precision auto; a run tries it by values"
        )
    made_for = program.raw.get("max_position_embeddings")
    if isinstance(made_for, int) and program.sequence > made_for:
        say(f"        --sequence {program.sequence:,} is more than the {made_for:,} tokens that the model is made for")
    if cards > 1:
        say(f"        {over_cards(program, cards)}")
    say("        The step was run on tensors without data. Planned, not measured on an AMD card.")


def over_cards(program: Program, cards: int) -> str:
    """Return what each card holds."""
    if program.shards > 1:
        shares = (
            f"1/{cards} of weights, gradients and optimizer states; a block at a time and what is in none are whole"
        )
        return f"--parallel fsdp2: each card holds {shares}. Counted from the design, no sharded step was measured."
    return "--parallel ddp: each card holds the whole model, and gradients once more for their sum; fsdp2 shards them."


def recipe_step(program: Program, card: Card, cards: int, micro_batch: int | None, rows: int) -> None:
    """Print the step that a run of a recipe takes, by part.

    Args:
        cards: how many cards.
        micro_batch: rows at a time; None for those that a run of --micro-batch auto starts with.
        rows: of an optimizer step on a card.

    Raises:
        TrainerError: RM737 where it does not fit.
    """
    if micro_batch is None:
        found = first_size(program, card, rows, cards=cards)
    else:
        at_once = min(micro_batch, rows)
        pieces = 1 if at_once == rows else 2  # gradients of earlier ones are there from the second on
        found = exact_fit(replace(program, rows=at_once, pieces=pieces), card, cards=cards)
    say(f"step    {rows:,} rows a card, {found.program.rows:,} at a time")
    one(found, cards, card, most_rows=rows)


def one(found: Fit, cards: int, card: Card, *, most_rows: int = MOST_ROWS) -> None:
    """Print one configuration by part.

    Args:
        cards: how many cards.
        most_rows: of an optimizer step on a card; with fewer at a time it is in pieces.

    Raises:
        TrainerError: RM737 where it does not fit.
    """
    emit("planned", **found.facts())
    largest = found.footprint.largest
    for part in PARTS:
        say(f"  {part:<12} {gib(largest.parts.get(part, 0)):>8} GiB")
    say(f"  {'together':<12} {gib(largest.allocated):>8} GiB, {gib(found.need)} with the allocator's rest")
    say(f"  {worded_rate(found)}")
    if not found.fits:
        raise refusal(found, card, cards, most_rows=most_rows)
    say(f"fits    {described(found.program)}: {gib(found.budget - found.need)} GiB stay free")


def table(programs: Sequence[Program], card: Card, cards: int, micro_batch: int | None) -> None:
    """Print a line a program: the largest micro-batch that fits, or whether the one asked for does.

    Args:
        programs: methods and checkpointing to plan, a line each.
        cards: how many cards.
        micro_batch: rows at a time; None for the largest that fit.

    Raises:
        TrainerError: RM737 where none fits.
    """
    wide = width_of(programs)
    say(f"  {'method':<{wide}} {'format':<6} {'checkpoints':<12} {'rows':>5} {'GiB':>7}  tokens/s, an assumption")
    found = [
        largest_fit(each, card, cards=cards)
        if micro_batch is None
        else fit(replace(each, rows=micro_batch), card, cards=cards)
        for each in programs
    ]
    for program, each in zip(programs, found, strict=True):
        start = f"  {name_of(program):<{wide}} {program.precision:<6} {program.checkpointing:<12}"
        if each is None:
            say(f"{start} {'-':>5} {'':>7}  one row does not fit")
            continue
        emit("planned", **each.facts())
        fits = "" if each.fits else "  does not fit"
        say(f"{start} {each.program.rows:>5} {gib(each.need):>7}  {worded_rate(each)}{fits}")
    if not any(each is not None and each.fits for each in found):
        last = fit(replace(programs[-1], rows=micro_batch or 1), card, cards=cards)
        raise refusal(last, card, cards, tried=len(programs))


def width_of(programs: Sequence[Program]) -> int:
    """Return the width of the column of methods."""
    return max(7, *(len(name_of(program)) for program in programs))


def longest(programs: Sequence[Program], card: Card, cards: int) -> None:
    """Print the longest row of each program, up to the length that the model is made for.

    Args:
        programs: methods and checkpointing to plan, a line each.
        cards: how many cards.
    """
    most = most_tokens(programs[0].raw)
    say(f"longest tokens of a single row that fits, up to {most:,}; estimated from two or three lengths")
    for program in programs:
        tokens = longest_row(program, card, cards=cards)
        names = {"method": name_of(program), "checkpointing": program.checkpointing}
        emit("longest_row", **names, tokens=tokens, most=most)
        line = f"  {name_of(program):<{width_of(programs)}} {program.precision:<6} {program.checkpointing:<12}"
        say(f"{line} {tokens:>9,}" if tokens else f"{line} {'-':>9}")


def described(program: Program) -> str:
    """Return a program as text."""
    checkpointing = "" if program.checkpointing == "off" else f", {program.checkpointing} checkpointing"
    over = "" if program.shards == 1 else f", --parallel fsdp2 over {program.shards} cards"
    rows = f"{program.rows} x {program.sequence:,} tokens"
    return f"{name_of(program)} in {program.precision}, {rows}{checkpointing}{over}"


def worded_rate(found: Fit) -> str:
    """Return the range of tokens per second, and of seconds a step."""
    if found.rate is None:
        return "no peak of this card is known, so no time"
    low, high = found.rate
    seconds = f"{brief(found.program.tokens / high)} to {brief(found.program.tokens / low)} s a step"
    return f"{low:,.0f} to {high:,.0f} ({seconds} at {SHARES[0]:.0%} to {SHARES[1]:.0%} of the peak)"


def brief(seconds: float) -> str:
    """Return a number with two digits that count, without an exponent where it is 100 or more."""
    return f"{seconds:.2g}" if seconds < 99.5 else f"{round(seconds, 1 - int(math.log10(seconds))):,.0f}"


def refusal(found: Fit, card: Card, cards: int, tried: int = 1, most_rows: int = MOST_ROWS) -> TrainerError:
    """Return RM737 with the numbers and what would fit.

    Args:
        cards: how many cards.
        tried: number of programs of which none fits.
        most_rows: of an optimizer step on a card.
    """
    program = found.program
    need = f"{gib(found.need)} GiB are needed, {gib(found.budget)} are there for tensors"
    parts = ", ".join(f"{name} {gib(size)}" for name, size in found.footprint.largest.parts.items() if size > 2**26)
    what = f"{described(program)} on {card.name}" + (f", nor any of the {tried} tried" if tried > 1 else "")
    return TrainerError("RM737", what=what, why=f"{need}: {parts}", next=what_fits(program, card, cards, most_rows))


def what_fits(program: Program, card: Card, cards: int, most_rows: int = MOST_ROWS) -> str:
    """Return the first smaller program that fits, or the memory with which the smallest one does, and its name.

    Args:
        cards: how many cards.
        most_rows: of an optimizer step on a card, which is taken in pieces where fewer fit.
    """
    ways = smaller_programs(program, cards)
    for each in ways:
        most = program.rows - 1 if each == program else most_rows
        pieces = each if most_rows == MOST_ROWS else replace(each, pieces=2)
        fitting = largest_fit(pieces, card, cards=cards, most_rows=most)
        if fitting is not None:
            return f"This would fit: {described(fitting.program)}."
    last = exact_fit(replace(ways[-1], rows=1), card, cards=cards)
    if last.fits and last.program != program:
        return f"This would fit: {described(last.program)}."
    least = last.footprint.reserved + card.budget - last.budget + CONTEXT
    memory = f"{math.ceil(10 * least / GIB) / 10:.1f} GiB"
    parts = last.footprint.largest.parts
    stays = parts.get("weights", 0) + parts.get("optimizer", 0)  # however short a row is
    shorter = "a shorter --sequence (--longest true gives what fits), " if stays < last.budget else ""
    return f"Take {shorter}a smaller model, or a card of at least {memory} for {described(last.program)}."


def smaller_programs(program: Program, cards: int) -> list[Program]:
    """Return the program itself and those that take less, in order: checkpointed, sharded, on frozen NF4 weights.

    DPO and KTO have no quantised form.

    Args:
        cards: how many cards; of one nothing is sharded.
    """
    checkpointed = replace(program, checkpointing="full")
    spread = [] if program.shards == cards else [sharded(checkpointed, cards)]
    ways = [*([program] if checkpointed == program else [program, checkpointed]), *spread]
    quantised = replace(checkpointed, adapter="qlora", peft=None)
    return ways if program.method in PREFERENCES or quantised in ways else [*ways, quantised]
