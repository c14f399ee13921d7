"""Rows of JSONL (or of one JSON list) as conversations, completions, texts or preference pairs, with file and line."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainer.data.tokens.field_names import (
    NAMES,
    NO_NAMES,
    fields_of,
    how_to_rename,
    name_among,
    rename,
    under_names,
    under_one_name,
)
from trainer.data.tokens.files.kind import is_json, is_rows, not_utf8, require_rows
from trainer.data.tokens.files.tables import NESTED, rows_of
from trainer.data.tokens.messages import (
    ROLES,
    WEIGHTS,
    RowError,
    messages_of,
    options_of,
    require_json,
    require_order,
    require_trainable,
    tools_of,
    transcribed,
    verdict_of,
    weight_of,
)
from trainer.runtime.errors import TrainerError

DECIDING = ("messages", "conversations", "chosen", "instruction", "completion", "text")  # each names a kind of row


@dataclass(frozen=True, kw_only=True)
class Record:
    """One row: `messages`, or a `prompt` and its `answer` without a template, or a `text` that is all trained.

    weights: of each message in the loss, 0 for others than the assistant's. rejected: the messages, or the answer,
    of the worse one of a pair, which shares its beginning with the row. good: whether the answer is marked as good.
    options: of the chat template, by the row's chat_template_kwargs.
    """

    where: str
    messages: tuple[dict[str, Any], ...] = ()
    weights: tuple[float, ...] = ()
    prompt: str = ""
    answer: str | None = None
    text: str | None = None
    tools: Any = None
    rejected: tuple[dict[str, Any], ...] | str | None = None
    good: bool | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def read_records(path: Path, names: Mapping[str, str] = NO_NAMES) -> Iterator[Record | TrainerError]:
    """Yield each row, or the error RM708 that names its line. Empty lines are passed over.

    Args:
        path: JSON rows or a table.
        names: value of `--rename`: what a field of the file is called here, by its name there.

    Raises:
        TrainerError: RM717 where the file cannot be read as rows at all, RM500 at its end for a name that no row has.
    """
    unseen = set(names)
    for where, value in _values(path):
        try:
            if isinstance(value, RowError):
                raise value
            unseen -= value.keys() if isinstance(value, dict) else set()
            yield _record(under_names(value, names), where)
        except RowError as error:
            yield TrainerError("RM708", what=str(error), where=where)
    if unseen:
        raise TrainerError("RM500", what=f"--rename {sorted(unseen)[0]}: no row has such a field", where=str(path))


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        if not is_json(path) and is_rows(path):
            yield from ((where, RowError(row) if isinstance(row, str) else row) for where, row in rows_of(path))
            return
        with path.open(encoding="utf-8-sig") as file:
            first = file.read(1)
            while first.isspace():
                first = file.read(1)
            file.seek(0)
            require_rows(path)
            if first != "[":
                yield from _lines(file, path)
                return
            text = file.read()
            yield from _lines(io.StringIO(text), path) if _is_lines(text) else _list(text, path)
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except (FileNotFoundError, IsADirectoryError) as error:
        raise TrainerError("RM717", what=f"{path} cannot be opened", why=str(error.strerror)) from None


def _is_lines(text: str) -> bool:
    """Return whether a text that begins with [ has a list on its first line and more after it: rows that are lists."""
    first, _, rest = text.strip().partition("\n")
    if not rest:
        return False
    try:
        return isinstance(json.loads(first), list)
    except (ValueError, RecursionError):
        return False


def _lines(file: Iterable[str], path: Path) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(file, 1):
        if line.strip():
            yield f"{path}:{number}", _parsed(line)


def _parsed(line: str) -> Any:
    try:
        row = json.loads(line, object_pairs_hook=_object)
        return _encodable(row) if "\\ud" in line.lower() else row
    except (ValueError, RecursionError, RowError) as error:
        one_line = "; a row is on one line, as `jq -c .` writes it" if line.strip() in ("{", "[") else ""
        return error if isinstance(error, RowError) else RowError(f"not valid JSON: {error}{one_line}")


def _encodable(row: Any) -> Any:
    """Return a row, or the error for one with half of a character, which no encoding has."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return RowError("a \\ud… escape is half of a surrogate pair, which is no character")
    return row


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's fields. Raises RowError for one that is there twice: readers differ in which counts."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise RowError(f"the field {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return made


def _list(text: str, path: Path) -> Iterator[tuple[str, Any]]:
    try:
        rows = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError, RowError) as error:
        raise TrainerError("RM717", what=f"{path.name} is not valid JSON", where=str(path), why=str(error)) from None
    escaped = "\\ud" in text.lower()
    for number, row in enumerate(rows, 1):
        yield f"{path}: row {number}", _encodable(row) if escaped else row


def _record(row: Any, where: str) -> Record:
    if isinstance(row, list) and row and all(isinstance(each, dict) and "role" in each for each in row):
        row = {"messages": row}
    if not isinstance(row, dict):
        raise RowError(f"a row is an object, not {type(row).__name__}")
    given, row = row, under_one_name(_filled(row))
    if isinstance(row.get("text"), str) and not any(name in row for name in (*DECIDING[:-1], "prompt")):
        return _unmarked(given, row, where)
    require_trainable(row)
    require_json(row, NESTED)
    return replace(_unmarked(given, row, where), good=verdict_of(row), options=options_of(row))


def _unmarked(given: Mapping[str, Any], row: dict[str, Any], where: str) -> Record:
    """Return a row without what marks its answer as good or bad.

    Args:
        given: fields of the row.
        row: those that are filled.
        where: file and line.
    """
    if "chosen" in row and "rejected" in row:
        return _pair(row, where)
    if "messages" in row or "conversations" in row:
        return _conversation(messages_of(row), where, tools=tools_of(row))
    if "instruction" in row:
        return _conversation(_instruction(row), where, tools=tools_of(row))
    if "prompt" in row and "completion" in row:
        return _completion(row, where)
    if isinstance(row.get("text"), str):
        _require_no_tree(given)
        return Record(where=where, text=row["text"])
    if "text" in row:
        raise RowError(f"text is no text, but of the kind {type(row['text']).__name__}")
    fields = fields_of(given)
    known = "messages, conversations, instruction and output, prompt and completion, prompt, chosen and rejected, text"
    raise RowError(f"no known fields (has: {fields}; known: {known}){how_to_rename(row)}")


def _filled(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without null, and next to a filled field of a known kind without empty lists.

    A table of several kinds of rows, as Parquet's, has each column in each row.
    """
    there = {name: value for name, value in row.items() if value is not None}
    filled = {name: value for name, value in there.items() if value != []}
    return filled if any(name in filled for name in DECIDING) else there


def _require_no_tree(row: Mapping[str, Any]) -> None:
    """Raise RowError for one message of a tree, as OASST's: alone it is a half of a conversation, and no text."""
    if str(row.get("role")).strip().lower() in ROLES:
        raise RowError("the row is one message of a conversation (role): write each thread as a row with messages")


def _instruction(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return an Alpaca row as messages: earlier turns, then instruction and input, then output."""
    for key in ("instruction", "output"):
        if not isinstance(row.get(key), str):
            other = name_among(row, NAMES[1]) if key == "output" else None
            named = {other: "output", **({"context": "input"} if row.get("context") else {})} if other else {}
            what = f"{key} is no text" if key in row else f"the row has no {key} (has: {fields_of(row)})"
            raise RowError(what + (f"; {rename(named)}" if other else ""))
    for key in ("input", "system"):
        if not isinstance(row.get(key) or "", str):
            raise RowError(f"{key} is no text")
    messages = [{"role": "system", "content": row["system"]}] if row.get("system") else []
    history = row.get("history") or []
    for turn in history if isinstance(history, list) else [history]:
        if not isinstance(turn, list) or len(turn) != 2 or not all(isinstance(each, str) for each in turn):
            raise RowError("history is no list of pairs of texts")
        messages += [{"role": "user", "content": turn[0]}, {"role": "assistant", "content": turn[1]}]
    question = "\n".join(text for text in (row["instruction"], row.get("input")) if text)
    return [*messages, {"role": "user", "content": question}, {"role": "assistant", "content": row["output"]}]


def _completion(row: Mapping[str, Any], where: str) -> Record:
    """Return a prompt and its completion; of two lists of messages the completion alone carries loss, as in TRL."""
    prompt, completion = row["prompt"], row["completion"]
    if _needs_template(row) and isinstance(prompt, str) and isinstance(completion, str):
        prompt, completion = [{"role": "user", "content": prompt}], _listed(completion)
    if isinstance(prompt, list) and isinstance(completion, list):
        before = [{**each, "weight": 0} if isinstance(each, dict) else each for each in prompt]
        return _conversation(messages_of({**row, "messages": [*before, *completion]}), where, tools=tools_of(row))
    if not isinstance(prompt, str) or not isinstance(completion, str):
        raise RowError("prompt and completion are neither texts nor lists of messages")
    return Record(where=where, prompt=prompt, answer=completion)


def _needs_template(row: Mapping[str, Any]) -> bool:
    """Return whether a row of texts has a system message or tools, for which a chat template alone has a place.

    Raises:
        RowError: for earlier turns, which are read next to an instruction.
    """
    if isinstance(row.get("history"), list) and row["history"]:
        answer = ",completion=output" if "completion" in row else ""
        raise RowError(f"the row has earlier turns (history) next to prompt: give --rename prompt=instruction{answer}")
    return "system" in row or tools_of(row) is not None


def _conversation(messages: Sequence[dict[str, Any]], where: str, tools: Any = None) -> Record:
    require_order(messages)
    weights = [weight_of(message, number) for number, message in enumerate(messages, 1)]
    bare = tuple({key: value for key, value in each.items() if key not in WEIGHTS} for each in messages)
    return Record(where=where, messages=bare, weights=tuple(weights), tools=tools)


def _pair(row: Mapping[str, Any], where: str) -> Record:
    chosen, rejected = row["chosen"], row["rejected"]
    if chosen == rejected:
        raise RowError("chosen and rejected are the same: the pair prefers nothing")
    texts = all(isinstance(row.get(name), str) for name in ("prompt", "chosen", "rejected"))
    if texts and not _needs_template(row):
        return Record(where=where, prompt=row["prompt"], answer=chosen, rejected=rejected)
    if "instruction" in row:
        before = _instruction({**row, "output": ""})[:-1]
        chosen, rejected = ([{"role": "assistant", "content": each}] for each in (chosen, rejected))
    else:
        chosen, rejected = transcribed(chosen), transcribed(rejected)
        before = _before(row, chosen)
    better, worse = ([*before, *messages_of({"messages": _listed(each)})] for each in (chosen, rejected))
    require_order(worse)
    _require_one_question(better, worse)
    record = _conversation(better, where, tools=tools_of(row))
    return Record(**{**vars(record), "rejected": tuple(worse)})


def _require_one_question(better: Sequence[Mapping[str, Any]], worse: Sequence[Mapping[str, Any]]) -> None:
    """Raise RowError where the two answers of a pair are to different conversations: then neither is preferred."""
    absent: Mapping[str, Any] = {}
    for number, pair in enumerate(itertools.zip_longest(better[:-1], worse[:-1], fillvalue=absent), 1):
        one, other = ((each.get("role"), each.get("content")) for each in pair)
        if one != other:
            raise RowError(f"chosen and rejected differ before their last answers, first in message {number}")


def _before(row: Mapping[str, Any], chosen: Any) -> list[dict[str, Any]]:
    """Return the messages before the two answers of a pair.

    Args:
        row: fields of the row.
        chosen: its better answer: a text, a message, or a list of messages, which may be the whole conversation.
    """
    if "messages" in row or "conversations" in row:
        before = messages_of(row)
    else:
        prompt, system = row.get("prompt"), row.get("system")
        listed = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt or []
        begin = [{"role": "system", "content": system}] if isinstance(system, str) and system else []
        before = [*begin, *(messages_of({"messages": listed}) if listed else [])]
    if not _is_whole(chosen):
        if all(each["role"] == "system" for each in before):
            question = name_among(row, NAMES[0])
            how = f"; {rename({question: 'prompt'})}" if question else ""
            raise RowError(f"chosen and rejected are answers, and neither prompt nor messages is there{how}")
        return before
    # What is next to a whole conversation, as in UltraFeedback, is a part of it once more.
    there = {str(each["content"]).strip() for each in messages_of({"messages": chosen})}
    return [] if all(str(each["content"]).strip() in there for each in before) else before


def _is_whole(answer: Any) -> bool:
    """Return whether an answer of a pair is the conversation from its beginning."""
    first = answer[0] if isinstance(answer, list) and answer and isinstance(answer[0], dict) else {}
    return ROLES.get(str(first.get("role", first.get("from"))).strip().lower()) in ("user", "system")


def _listed(answer: Any) -> list[Any]:
    if isinstance(answer, str):
        return [{"role": "assistant", "content": answer}]
    return answer if isinstance(answer, list) else [answer]
