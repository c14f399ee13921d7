"""Records as rows of tokens with the loss weight of each.

Every refusal names file and line. What is done with refused rows is `row.RowPolicy`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from trainer.data.tokens.chat_template import ChatTemplate, Message
from trainer.data.tokens.messages import REASONING
from trainer.data.tokens.records import Record
from trainer.data.tokens.row import JudgedRow, RowPolicy, TokenizedRows, TokenRow, collected, usable
from trainer.data.tokens.tokenizer import Encoded, Tokenizer, with_begin, with_stop
from trainer.runtime.errors import TrainerError

MARKED = "the row's answer is marked as good or bad (KTO), and a bad one would be trained like a good one"
UNMARK = (
    "Choose --method kto, which learns from both; keep the good rows alone, without their mark; or join a prompt's "
    "good and bad answer as chosen and rejected."
)


def tokenize_records(
    records: Iterable[Record | TrainerError], tokenizer: Tokenizer, template: ChatTemplate | None, policy: RowPolicy
) -> TokenizedRows:
    """Return the rows that can be trained on.

    Args:
        records: records, or the error of a line that is none.

    Raises:
        TrainerError: RM706, RM708 to RM711, for the first row that a policy does not accept.
    """

    def row_of(record: Record) -> tuple[TokenRow, bool]:
        return usable(tokenized(record, tokenizer, template, policy), policy)

    return collected(records, row_of, policy)


def tokenize_pairs(
    records: Iterable[Record | TrainerError], tokenizer: Tokenizer, template: ChatTemplate | None, policy: RowPolicy
) -> TokenizedRows:
    """Return the preference pairs that can be trained on, as tuples of the chosen and the rejected row.

    Args:
        records: records, or the error of a line that is none.

    Raises:
        TrainerError: as `tokenize_records`.
    """

    def pair_of(record: Record) -> tuple[tuple[TokenRow, TokenRow], bool]:
        chosen, rejected = tokenized_pair(record, tokenizer, template, policy)
        (chosen, one), (rejected, other) = usable(chosen, policy), usable(rejected, policy)
        return (chosen, rejected), one or other

    return collected(records, pair_of, policy)


def tokenize_judged(
    records: Iterable[Record | TrainerError], tokenizer: Tokenizer, template: ChatTemplate | None, policy: RowPolicy
) -> TokenizedRows:
    """Return the rows whose answers are marked as good or bad, as `JudgedRow`; a pair is one of each.

    Args:
        records: records, or the error of a line that is none.

    Raises:
        TrainerError: as `tokenize_records`.
    """

    def judged(record: Record) -> tuple[JudgedRow, bool]:
        row, cut = usable(tokenized_answer(record, tokenizer, template, policy), policy)
        return JudgedRow(row=row, good=bool(record.good)), cut

    return collected(itertools.chain.from_iterable(map(apart, records)), judged, policy)


def apart(record: Record | TrainerError) -> list[Any]:
    """Return a pair as a good and a bad answer, another record as it is."""
    if isinstance(record, TrainerError) or record.rejected is None:
        return [record]
    return [replace(record, rejected=None, good=True), replace(_rejected(record), rejected=None, good=False)]


def tokenized(record: Record, tokenizer: Tokenizer, template: ChatTemplate | None, policy: RowPolicy) -> TokenRow:
    """Return one record's tokens and weights.

    Raises:
        TrainerError: RM706 where a template is missing or fails, RM709 and RM710.
    """
    if record.good is not None:
        raise TrainerError("RM708", what=MARKED, where=record.where, next=UNMARK)
    if record.text is not None:
        ids = with_stop(tokenizer, with_begin(tokenizer, tokenizer.encode(record.text).ids))
        return TokenRow(tokens=ids, weights=[1.0] * len(ids), where=record.where)
    if record.answer is not None:
        return _completion(record.prompt, record.answer, record.where, tokenizer, policy)
    return _conversation(record, tokenizer, template, policy)


def tokenized_pair(
    record: Record, tokenizer: Tokenizer, template: ChatTemplate | None, policy: RowPolicy
) -> tuple[TokenRow, TokenRow]:
    """Return the chosen and the rejected row of a preference pair; only the last answers carry loss.

    Raises:
        TrainerError: RM708 for a record without a pair, and what `tokenized` raises.
    """
    if record.rejected is None:
        marked = "Choose --method kto, which learns from answers that are marked as good or bad."
        what = "the row is no pair: chosen and rejected are needed"
        raise TrainerError("RM708", what=what, where=record.where, next=marked if record.good is not None else "")
    both = [tokenized(_last_only(each), tokenizer, template, policy) for each in (record, _rejected(record))]
    return both[0], both[1]


def tokenized_answer(
    record: Record, tokenizer: Tokenizer, template: ChatTemplate | None, policy: RowPolicy
) -> TokenRow:
    """Return a row whose answer is good or bad; only its last answer carries loss.

    Raises:
        TrainerError: RM708 for a record whose answer is not marked, and what `tokenized` raises.
    """
    if record.good is None or record.text is not None:
        what = "the row's answer is marked neither good nor bad (label or kto_tag: true or false)"
        raise TrainerError("RM708", what=what, where=record.where)
    return tokenized(_last_only(replace(record, good=None)), tokenizer, template, replace(policy, whole=False))


def _rejected(record: Record) -> Record:
    """Return a pair with the worse answer in the place of the better one."""
    if isinstance(record.rejected, str):
        return replace(record, answer=record.rejected)
    assert record.rejected is not None
    return replace(record, messages=record.rejected, weights=(1.0,) * len(record.rejected))


def _last_only(record: Record) -> Record:
    count = len(record.messages)
    return replace(record, weights=(0.0,) * (count - 1) + (1.0,) if count else ())


def _completion(prompt: str, answer: str, where: str, tokenizer: Tokenizer, policy: RowPolicy) -> TokenRow:
    """Return the prompt's tokens as generation will meet them, then the answer's, ended by a stop token."""
    before, after = _apart(prompt, answer, tokenizer)
    if not after:
        raise TrainerError("RM709", what="the completion is empty", where=where)
    before, after = with_begin(tokenizer, before), with_stop(tokenizer, after)
    weights = [float(policy.whole)] * len(before) + [1.0] * len(after)
    return TokenRow(tokens=[*before, *after], weights=weights, where=where)


def _apart(prompt: str, answer: str, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Return the tokens of a prompt and of the answer to it.

    Where a token would join both, which no generation would, they are tokenised apart, unless that changes the text:
    tokenizers made from SentencePiece put a space before whatever stands alone.
    """
    before, joined = tokenizer.encode(prompt).ids, tokenizer.encode(prompt + answer).ids
    if not answer or joined[: len(before)] == before:
        return before, joined[len(before) :]
    alone = tokenizer.encode(answer).ids
    if tokenizer.decode([*before, *alone]) == tokenizer.decode(joined):
        return before, alone
    differing = (place for place, (one, other) in enumerate(zip(before, joined, strict=False)) if one != other)
    same = next(differing, min(len(before), len(joined)))
    return joined[:same], joined[same:]


def _conversation(record: Record, tokenizer: Tokenizer, template: ChatTemplate | None, policy: RowPolicy) -> TokenRow:
    if template is None:
        raise TrainerError("RM706", what="conversations need a chat template", where=record.where)
    template = replace(template, special={**template.special, **record.options})
    _require_written(record, template)
    _require_answers(record)
    rendered = template.render(record.messages, record.tools)
    weights = [weight for message, weight in zip(record.messages, record.weights, strict=True) if _answers(message)]
    if len(rendered.answers) != len(weights):
        what = f"the template marks {len(rendered.answers)} answers of {len(weights)}"
        raise TrainerError("RM706", what=what, where=record.where)
    encoded = tokenizer.encode(rendered.text)
    tokens, spans = list(encoded.ids), list(encoded.spans)
    loss = [float(policy.whole)] * len(tokens)
    appended: list[int] = []
    closes: Sequence[int | None] = rendered.closes or [None] * len(weights)
    for span, close, weight in zip(rendered.answers, closes, weights, strict=True):
        inside = _inside(span, spans, tokens, tokenizer) if close is None else _closed(span, close, encoded, tokenizer)
        for place in inside:
            loss[place] = weight
        if weight > 0 and not any(tokens[place] in tokenizer.stops for place in inside[-1:]):
            appended.append(inside[-1] + 1 if inside else len(tokens))
    if appended and policy.stop_token == "require":
        raise _without_stop(record.where, len(appended), tokenizer)
    for place in reversed(appended):
        tokens.insert(place, tokenizer.stops[0])
        loss.insert(place, 1.0)
    return TokenRow(tokens=tokens, weights=loss, where=record.where)


def _require_written(record: Record, template: ChatTemplate) -> None:
    """Raise RM706 where the template leaves calls of tools, their list or reasoning out: less would be trained."""
    named = [name for name in ("tool_calls", *REASONING) if any(each.get(name) for each in record.messages)]
    for name in (*named, *(["tools"] if record.tools else [])):
        if name not in template.text:
            what = f"the row has {name}, and the chat template {template.source} does not write them"
            raise TrainerError("RM706", what=what, where=record.where, next="Use a model whose template does.")


def _require_answers(record: Record) -> None:
    """Raise RM709 for an answer that carries loss and has no text: the model would learn to end at once."""
    for number, (message, weight) in enumerate(zip(record.messages, record.weights, strict=True), 1):
        if weight > 0 and not str(message["content"]).strip() and not message.get("tool_calls"):
            what = f"the answer in message {number} is empty: of it only the stop token would be trained"
            raise TrainerError("RM709", what=what, where=record.where)


def _answers(message: Message) -> bool:
    return bool(message["role"] == "assistant")


def _inside(span: tuple[int, int], spans: list[tuple[int, int]], tokens: list[int], tokenizer: Tokenizer) -> list[int]:
    """Return the tokens of the answer, up to its last stop token: what follows that is never generated.

    From the first to the last that begin in it: some tokenizers give spaces no characters of their own.
    """
    begun = [place for place, (begin, end) in enumerate(spans) if span[0] <= begin < span[1] and end > begin]
    inside = list(range(begun[0], begun[-1] + 1)) if begun else []
    stops = [place for place in inside if tokens[place] in tokenizer.stops]
    after = [place for place in inside if stops and place > stops[-1]]
    text_after = tokenizer.decode([tokens[place] for place in after])
    return [place for place in inside if place <= stops[-1]] if stops and not text_after.strip() else inside


def _closed(span: tuple[int, int], close: int, encoded: Encoded, tokenizer: Tokenizer) -> list[int]:
    """Return the tokens of an answer to the first stop token from `close` on; without one those of its own text.

    Args:
        span: characters from the answer's text to the next message's.
        close: end of the answer's own text.
        encoded: the whole conversation.
    """
    begun = [place for place, (begin, end) in enumerate(encoded.spans) if span[0] <= begin < span[1] and end > begin]
    after = [place for place in begun if encoded.spans[place][0] >= close]
    stop = next((place for place in after if encoded.ids[place] in tokenizer.stops), None)
    own = [place for place in begun if encoded.spans[place][0] < close]
    last = own[-1:] if stop is None else [stop]
    return list(range(begun[0], last[0] + 1)) if last else []


def _without_stop(where: str, count: int, tokenizer: Tokenizer) -> TrainerError:
    what = f"{count} answers end without a stop token that carries loss"
    return TrainerError("RM710", what=what, where=where, why=f"stop tokens have the ids {list(tokenizer.stops)}")
