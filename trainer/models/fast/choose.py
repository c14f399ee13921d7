"""Have a decoder use the faster ways that pass: attention kernel, blocks, the loss; each with its reason."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from trainer.device.memory import OutOfMemory
from trainer.models.decoder.attention import Attention
from trainer.models.decoder.masks import AttentionLayout
from trainer.models.decoder.model import Block, Decoder
from trainer.models.fast import (
    adapted,
    attention,
    compiled,
    cross_entropy,
    elementwise,
    feed_forward,
    own_gelu,
    own_nf4,
)
from trainer.models.fast.block_trial import FEW, MOST, Request, exact_results, examined, few, timed_again
from trainer.models.fast.kernels import own_gated
from trainer.models.fast.proof import AGAIN, FASTER, Choice, Trial, first_line, judged, reason, relative_error

OWN_NF4 = "adapters folded, compiled elementwise, own NF4"
OWN_GELU = "compiled, own GELU"  # holds less than "compiled" by GELU's output of each layer
LEANER = 1.25  # times as slow as plain torch at most, where less is held: launches of short blocks vary by so much
Work = Callable[[Block, Tensor, AttentionLayout, Any], Tensor]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What is used for each part of the model."""

    choices: dict[str, Choice]

    def facts(self) -> dict[str, Any]:
        """Return what metadata holds."""
        return {part: choice.facts() for part, choice in self.choices.items()}

    def names(self) -> dict[str, str]:
        """Return what a resumed run is to use again."""
        return {part: choice.name for part, choice in self.choices.items()}


def hold_frozen_weights_in(model: nn.Module, dtype: torch.dtype, *, replaced: bool = False) -> None:
    """Cast the frozen weights of linear layers, and with bf16 of embeddings, to the dtype they are computed in.

    Autocast rounds them the same way at each use. Norms stay as they are.

    Args:
        model: network, changed in place.
        dtype: format of the products.
        replaced: whether all values are loaded afterwards: then none is read, 16 s less for the shape of Qwen2.5-7B.
    """
    kinds: tuple[type[nn.Module], ...] = (nn.Linear, nn.Embedding) if dtype == torch.bfloat16 else (nn.Linear,)
    for module in model.modules():
        if isinstance(module, kinds):
            for name, weight in list(module.named_parameters(recurse=False)):
                if not weight.requires_grad:
                    held = torch.empty_like(weight, dtype=dtype) if replaced else weight.detach().to(dtype)
                    setattr(module, name, nn.Parameter(held, requires_grad=False))


def use_fast(model: nn.Module, request: Request) -> Chosen:
    """Try what is faster on this device and in this dtype, and have `model` (with a decoder) use what passes."""
    decoder: Decoder = model.decoder  # type: ignore[assignment]
    request = replace(request, rotated=decoder.config.rope is not None)
    choices = {"attention": _attention(decoder, request), "blocks": _blocks(decoder, request)}
    choices["loss"] = _loss(model, decoder, request)
    return Chosen(choices=choices)


def _attention(decoder: Decoder, request: Request) -> Choice:
    config, first = decoder.config, _first(decoder)
    if any(window is not None and window < request.tokens for window in config.windows):
        return Choice(name="torch's choice", why="the layers have a window, which is a mask")
    rows = max(1, min(request.rows, MOST // request.tokens))
    call = attention.Call(
        config=config.attention,
        scale=first.self_attn.scale,
        rows=rows,
        tokens=request.tokens,
        device=request.device,
        dtype=request.dtype,
    )
    kernel, choice = attention.choose(call, request.earlier("attention"), request.refused)
    for module in decoder.modules():
        if isinstance(module, Attention):
            module.kernel = kernel
    return choice


def _first(decoder: Decoder) -> Block:
    return cast(Block, decoder.model.layers[0])


def _blocks(decoder: Decoder, request: Request) -> Choice:
    """Choose how blocks are computed; the stream's dtype belongs to it."""
    blocks = [cast(Block, block) for block in decoder.model.layers]
    activation = decoder.config.feed_forward.activation
    candidates, why = _candidates(blocks, activation, request)
    earlier = request.earlier("blocks")
    if earlier == "plain":
        return Choice(name="plain", why="the unfinished run computed them so")
    plain, exact = Trial(name="plain"), []
    if candidates:
        try:
            exact = exact_results(blocks[0], few(request))
        except OutOfMemory as error:
            torch.cuda.empty_cache()
            return Choice(name="plain", why=f"no memory for a block's results in fp64: {first_line(error)}")
        plain = _plain(blocks[0], request, exact)
    trials, kept = [plain], None
    for name, make in candidates.items():
        if earlier not in (None, name) or (earlier is None and name == OWN_GELU):
            continue
        trials.append(_tried(blocks[0], make, request, plain, exact, name))
        if earlier is None:
            plain, trials[-1] = _confirmed(blocks[0], make, request, plain, trials[-1])
            trials[0] = plain
        if _better(trials[-1], plain, requested=earlier is not None):
            kept = name
            break
    if kept == "compiled" and earlier is None and OWN_GELU in candidates:
        trials = _refined(blocks[0], candidates, request, trials, exact)
        kept = OWN_GELU if _better(trials[2], trials[1], requested=False) else kept
    decoder.model.stream = request.stream if request.dtype.itemsize == 2 else None
    if kept is None:
        return Choice(name="plain", why=why or reason(trials), trials=tuple(trials) if candidates else ())
    _install(decoder, blocks, candidates[kept], request)
    return Choice(name=kept, why=f"right, and faster than plain or leaner: {reason(trials)}", trials=tuple(trials))


def _plain(block: Block, request: Request, exact: list[Tensor]) -> Trial:
    """Return plain torch's trial; where it does not even fit into memory, any way that fits is better."""
    try:
        return examined(block, None, request, exact, name="plain")
    except OutOfMemory as error:
        torch.cuda.empty_cache()
        return Trial(name="plain", refused=first_line(error))


def _better(trial: Trial, plain: Trial, *, requested: bool) -> bool:
    """Return whether a way that is right is faster than plain torch, or not clearly slower and holds less.

    Next to other processes short blocks were timed up to 25 % apart from one start to the next, and with the choice the
    memory of a run, for which `plan` counts on the faster way, changed by 7 to 20 %.
    """
    if trial.refused or trial.seconds is None:
        return False
    if requested or plain.seconds is None or trial.seconds * FASTER < plain.seconds:
        return True
    return _leaner(trial, plain) and trial.seconds < plain.seconds * LEANER


def _leaner(trial: Trial, plain: Trial) -> bool:
    return trial.held is not None and plain.held is not None and trial.held < plain.held


def _confirmed(
    block: Block, make: Callable[[Block], Work], request: Request, plain: Trial, found: Trial
) -> tuple[Trial, Trial]:
    """Return plain torch's trial and the way's; where it holds less and is left for its time alone, both timed anew.

    In turn, and the least counts: other programs on the card or the host only ever add to a time. The block keeps the
    way where it is used, and computes plainly otherwise.
    """
    for _ in range(AGAIN):
        if found.refused or not _leaner(found, plain) or _better(found, plain, requested=False):
            break
        plain = timed_again(block, plain, request)
        block.fast = make(block)
        found = timed_again(block, found, request)
        if not _better(found, plain, requested=False):
            block.fast = None
    return plain, found


def _refined(
    block: Block,
    candidates: dict[str, Callable[[Block], Work]],
    request: Request,
    trials: list[Trial],
    exact: list[Tensor],
) -> list[Trial]:
    """Return the trials with that of compiled blocks with own kernels; the block keeps these where they are better.

    Args:
        candidates: see `_candidates`.
        trials: of plain torch, and of compiled blocks, which the block has.
        exact: see `exact_results`.
    """
    plain, one = trials
    found = _tried(block, candidates[OWN_GELU], request, plain, exact, OWN_GELU)
    for _ in range(AGAIN):
        if found.refused or not _leaner(found, one) or _better(found, one, requested=False):
            break
        block.fast = candidates["compiled"](block)
        one = timed_again(block, one, request)
        block.fast = candidates[OWN_GELU](block)
        found = timed_again(block, found, request)
    block.fast = candidates[OWN_GELU if _better(found, one, requested=False) else "compiled"](block)
    return [plain, one, found]


def _candidates(
    blocks: list[Block], activation: str, request: Request
) -> tuple[dict[str, Callable[[Block], Work]], str]:
    """Return the ways by name, best first, each as what makes a block's; or why there is none."""
    reasons = {adapted.why_not(block, activation) for block in blocks} - {None}
    if not reasons:
        ops = {"adapters folded, plain elementwise": elementwise.PLAIN}
        if "compile" not in request.refused:
            ops = {"adapters folded, compiled elementwise": elementwise.compiled(), **ops}
            if own_nf4.there(blocks, request.dtype) and "triton" not in request.refused:
                ops = {OWN_NF4: own_nf4.elementwise_of(), **ops}
            if own_gelu.there() and "triton" not in request.refused:
                ops = _with_own_gated(ops, blocks[0], request)
        how: dict[str, Any] = {
            "dtype": request.dtype,
            "stream": request.stream,
            "tile": feed_forward.tile_of(request.checkpointing),
        }
        return {name: partial(_adapted, activation, each, how) for name, each in ops.items()}, ""
    if any(adapted.is_adapted(block) for block in blocks):
        return {}, "; ".join(sorted(str(each) for each in reasons))
    reasons = {compiled.why_not(block) or request.refused.get("compile") for block in blocks} - {None}
    if reasons:
        return {}, "; ".join(sorted(str(each) for each in reasons))
    ways: dict[str, Any] = {"compiled": compiled.CompiledBlock()}
    enough = request.rows * request.tokens >= own_gelu.LEAST or request.earlier("blocks") == OWN_GELU
    if (
        enough
        and own_gelu.there()
        and "triton" not in request.refused
        and not any(own_gelu.why_not(each, activation, request.dtype) for each in blocks)
    ):
        ways[OWN_GELU] = compiled.CompiledBlock(gelu=own_gelu.kernels_of(activation))
    return {name: partial(_shared, way) for name, way in ways.items()}, ""


def _with_own_gated(
    ops: dict[str, elementwise.Elementwise], block: Block, request: Request
) -> dict[str, elementwise.Elementwise]:
    """Return the operations by name, before them the best with the own kernel of activations where it has a use."""
    if not own_gated.suits(block.mlp.gated, request.dtype, feed_forward.tile_of(request.checkpointing)):
        return ops
    name, best = next(iter(ops.items()))
    return {name + own_gated.NAMED: own_gated.with_own_gated(best), **ops}


def _shared(way: Work, block: Block) -> Work:
    return way


def _adapted(activation: str, ops: elementwise.Elementwise, how: dict[str, Any], block: Block) -> Work:
    return adapted.AdaptedBlock(block, activation, ops=ops, **how)


def _install(decoder: Decoder, blocks: list[Block], make: Callable[[Block], Work], request: Request) -> None:
    for block in blocks:
        block.fast = make(block) if block.fast is None else block.fast
    first = blocks[0].fast
    if "compile" in request.refused and not isinstance(first, adapted.AdaptedBlock):
        return
    ops = first.ops if isinstance(first, adapted.AdaptedBlock) else elementwise.compiled(dynamic=False)
    last = partial(last_norm, ops, request.dtype)
    if not judged("last norm", _error_of_norm(last, decoder.model.norm, request), request.dtype).refused:
        decoder.model.last_norm = last


def last_norm(ops: elementwise.Elementwise, dtype: torch.dtype, norm: nn.Module, states: Tensor) -> Tensor:
    """Return the norm of the states, by `ops`.

    Args:
        dtype: of the result.
        norm: the decoder's last norm.
        states: residual stream, (rows, tokens, width).
    """
    with torch.autocast(states.device.type, enabled=False):
        return ops.normed(states, *elementwise.Norm.of(norm).arguments(), dtype)


def _error_of_norm(last: Callable[[nn.Module, Tensor], Tensor], norm: nn.Module, request: Request) -> float:
    """Return the error of the last norm's values and gradients against fp64."""
    generator = torch.Generator().manual_seed(2)
    width = next(norm.parameters()).shape[0]
    states, upstream = (torch.randn(2, FEW, width, generator=generator).to(request.stream) for _ in range(2))

    def results(module: nn.Module, work: Callable[[Tensor], Tensor], inputs: Tensor) -> list[Tensor]:
        leaf = inputs.detach().requires_grad_()
        weights = [weight for weight in module.parameters() if weight.requires_grad]
        output = work(leaf)
        gradients = torch.autograd.grad(output, [leaf, *weights], upstream.to(output.device, output.dtype))
        return [output.detach(), *gradients]

    twin = copy.deepcopy(norm).cpu().double()
    exact = results(twin, twin, states.double())
    return relative_error(results(norm, partial(last, norm), states.to(request.device)), exact)


def _tried(
    block: Block, make: Callable[[Block], Work], request: Request, plain: Trial, exact: list[Tensor], name: str
) -> Trial:
    """Compare a way with fp64 and time it; the block keeps it where it is right, and computes plainly otherwise."""
    try:
        block.fast = make(block)
        found = examined(block, plain, request, exact, name=name)
    except Exception as error:  # a compiler may raise whatever its back end raises
        found = Trial(name=name, refused=first_line(error))
    if not _better(found, plain, requested=request.earlier("blocks") is not None):
        block.fast = None
    return found


def _loss(model: nn.Module, decoder: Decoder, request: Request) -> Choice:
    call = cross_entropy.Call(
        tokens=request.rows * request.tokens,
        vocabulary=decoder.config.vocabulary,
        dtype=request.dtype,
        device=request.device,
        checkpointing=request.checkpointing,
    )
    head, choice = cross_entropy.choose(call, request.earlier("loss"), request.refused)
    model.head = head  # type: ignore[assignment]
    return choice
