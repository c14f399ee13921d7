"""Rows of a file as they would be trained: counts of all, tokens of some by their part in the loss, and findings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainer.data.tokens import corpus
from trainer.data.tokens.chat_template import ChatTemplate
from trainer.data.tokens.field_names import NO_NAMES
from trainer.data.tokens.files.kind import is_one_text, is_rows
from trainer.data.tokens.load import method_of, of_one_kind
from trainer.data.tokens.records import Record, read_records
from trainer.data.tokens.row import RowPolicy, TokenRow, is_dropped, usable
from trainer.data.tokens.tokenize import apart, tokenized, tokenized_answer, tokenized_pair
from trainer.data.tokens.tokenizer import Tokenizer
from trainer.runtime.errors import TrainerError
from trainer.tasks.language.inputs import template_of, tokenizer_of

PROMPT, ANSWER, STOP = "prompt", "answer", "stop"
MOST_FINDINGS = 1000  # kept with their words; more are counted
UNBOUNDED = 2**62  # texts are joined and cut into windows, so that none is too long


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A row that is not trained as it stands: error code, file and line, what is wrong, and what training does."""

    code: str
    where: str
    what: str
    outcome: str


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A row that is shown: runs of (part, text), and how many tokens it has, trains, and is filled up with alone."""

    where: str
    parts: list[tuple[str, str]]
    tokens: int
    trained: int
    padding: int


@dataclass(kw_only=True)
class Inspection:
    """Inspection of a file for a method. Counts are of all rows; `findings` and `samples` are the first ones."""

    name: str
    method: str
    tokenizer: str
    template: str
    sequence: int
    rows: int = 0
    usable: int = 0
    tokens: int = 0
    trained: int = 0
    refused: int = 0
    findings: list[Finding] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    trained_counts: list[int] = field(default_factory=list)
    good: int = 0  # answers marked so, with method kto


def inspect(  # noqa: PLR0913 -- settings of training, all by keyword
    data: Path,
    *,
    model: Path | None = None,
    samples: int = 20,
    sequence: int = 256,
    method: str = "auto",
    bad_rows: str = "stop",
    too_long: str = "stop",
    stop_token: str = "require",
    train_on_prompts: bool = False,
    names: Mapping[str, str] = NO_NAMES,
) -> Inspection:
    """Read the file to its end and return what training would make of each row.

    Args:
        data: JSON lines or text.
        model: folder with tokenizer and chat template.
        samples: rows to show.
        sequence: value of `--sequence`, in tokens.
        method: value of `--method`.
        bad_rows: value of `--bad-rows`.
        too_long: value of `--too-long`.
        stop_token: value of `--stop-token`.
        train_on_prompts: value of `--train-on-prompts`.
        names: value of `--rename`.

    Raises:
        TrainerError: RM700 and RM705 for the model folder, RM717 for a file that cannot be read.
    """
    tokenizer = tokenizer_of(model)
    template = template_of(model, tokenizer)
    seen = Inspection(
        name=data.name,
        method=_method(data, method, names),
        tokenizer=tokenizer.name,
        template=Path(template.source).name if template else "none",
        sequence=sequence,
    )
    if not is_rows(data) or (seen.method == "pretrain" and is_one_text(data, names)):
        _windows(seen, data, tokenizer, samples)
        return seen
    length = UNBOUNDED if seen.method == "pretrain" else sequence
    policy = RowPolicy(
        length=length, bad_rows=bad_rows, too_long=too_long, stop_token=stop_token, whole=train_on_prompts
    )
    records = read_records(data, names)
    for record in records if method != "auto" else of_one_kind(records, seen.method):
        _take(seen, record, tokenizer, template, policy, samples)
    if not seen.rows:
        raise TrainerError("RM717", what="the file has no row", where=str(data))
    return seen


def _method(data: Path, requested: str, names: Mapping[str, str]) -> str:
    try:
        return method_of(data, requested, names)
    except TrainerError as error:
        if error.code != "RM708":
            raise
        return "sft"  # no row is valid: each one becomes a finding


def _take(
    seen: Inspection,
    record: Record | TrainerError,
    tokenizer: Tokenizer,
    template: ChatTemplate | None,
    policy: RowPolicy,
    samples: int,
) -> None:
    """Count one record; what is wrong with it becomes a finding."""
    seen.rows += 1
    try:
        if isinstance(record, TrainerError):
            raise record
        _require_text(record, seen.method)
        rows = [usable(row, policy) for row in _tokenized(seen.method)(record, tokenizer, template, policy)]
    except TrainerError as error:
        outcome = "the row is dropped" if is_dropped(error, policy) else "training stops here"
        _find(seen, Finding(code=error.code, where=error.where or "", what=error.what, outcome=outcome))
        return
    seen.usable += 1
    seen.good += sum(bool(each.good) for each in apart(record)) if seen.method == "kto" else 0
    for row, cut in rows:
        if cut:
            what = f"more than {policy.length} tokens"
            _find(seen, Finding(code="RM711", where=row.where, what=what, outcome="its end is cut off"))
        _count(seen, row, tokenizer, samples)


Rows = Callable[[Record, Tokenizer, ChatTemplate | None, RowPolicy], tuple[TokenRow, ...]]


def _tokenized(method: str) -> Rows:
    kinds: dict[str, Rows] = {"dpo": tokenized_pair, "kto": _judged}
    return kinds.get(method, lambda *given: (tokenized(*given),))


def _judged(
    record: Record, tokenizer: Tokenizer, template: ChatTemplate | None, policy: RowPolicy
) -> tuple[TokenRow, ...]:
    """Return a row whose place has what its answer is marked as; of a pair two."""
    rows = [(tokenized_answer(each, tokenizer, template, policy), each.good) for each in apart(record)]
    return tuple(replace(row, where=f"{row.where} ({'good' if good else 'bad'})") for row, good in rows)


def _require_text(record: Record, method: str) -> None:
    if method == "pretrain" and record.text is None:
        what = "a corpus needs rows with the field text"
        raise TrainerError("RM708", what=what, where=record.where, next="Choose --method sft for conversations.")


def _find(seen: Inspection, finding: Finding) -> None:
    seen.refused += 1
    if len(seen.findings) < MOST_FINDINGS:
        seen.findings.append(finding)


def _count(seen: Inspection, row: TokenRow, tokenizer: Tokenizer, samples: int) -> None:
    seen.tokens += len(row.tokens)
    seen.trained += row.trained
    seen.trained_counts.append(row.trained)
    if len(seen.samples) < samples:
        seen.samples.append(sample_of(row, tokenizer, seen.sequence))


def sample_of(row: TokenRow, tokenizer: Tokenizer, sequence: int) -> Sample:
    """Return a row with the text of each run of tokens that have one part in the loss.

    Args:
        sequence: length in tokens beyond which a row counts as cut.
    """
    kinds = [_kind(row, place, tokenizer) for place in range(len(row.tokens))]
    runs = itertools.groupby(zip(kinds, row.tokens, strict=True), key=lambda each: each[0])
    parts = [(kind, text_of([token for _, token in run], tokenizer)) for kind, run in runs]
    padding = max(0, sequence - len(row.tokens))
    return Sample(where=row.where, parts=parts, tokens=len(row.tokens), trained=row.trained, padding=padding)


def _kind(row: TokenRow, place: int, tokenizer: Tokenizer) -> str:
    if place == 0 or row.weights[place] <= 0:  # nothing predicts the first token
        return PROMPT
    return STOP if row.tokens[place] in tokenizer.stops else ANSWER


def text_of(ids: list[int], tokenizer: Tokenizer) -> str:
    """Return the text of tokens, special ones spelled out."""
    parts = itertools.groupby(ids, key=lambda token: token in tokenizer.stops or tokenizer.decode([token]) == "")
    return "".join(
        "".join(map(tokenizer.spelling, run)) if is_special else tokenizer.decode(list(run))
        for is_special, run in parts
    )


def _windows(seen: Inspection, data: Path, tokenizer: Tokenizer, samples: int) -> None:
    """Count a text's windows; only those that are shown are held."""
    if not data.is_file():
        raise TrainerError("RM717", what=f"{data} is no file", where=str(data))
    shown: list[int] = []
    for piece in corpus.pieces_of(data, tokenizer):
        seen.tokens += len(piece)
        shown += piece[: max(0, samples * seen.sequence - len(shown))]
    seen.rows = seen.usable = max(0, seen.tokens - 1) // seen.sequence
    seen.trained = seen.rows * seen.sequence
    seen.trained_counts = [seen.sequence] * min(seen.rows, 1)
    for number, ids in enumerate(_cut(shown, seen.sequence), 1):
        row = TokenRow(tokens=ids, weights=[1.0] * len(ids), where=f"{data}: window {number}")
        seen.samples.append(sample_of(row, tokenizer, seen.sequence))


def _cut(ids: list[int], length: int) -> Iterator[list[int]]:
    yield from (ids[begin : begin + length] for begin in range(0, len(ids) - 1, length))
