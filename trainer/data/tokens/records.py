"""Rows of JSONL (or of one JSON list) as conversations, completions, texts or preference pairs, with file and line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.runtime.errors import TrainerError

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "ai": "assistant",
    "chatgpt": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "observation": "tool",
    "function": "tool",
    "function_response": "tool",
    "tool_response": "tool",
    "ipython": "tool",
}
WEIGHTS = ("weight", "loss_weight")  # of a message: OpenAI's name, and LLaMA-Factory's


@dataclass(frozen=True, kw_only=True)
class Record:
    """One row: `messages`, or a `prompt` and its `answer` without a template, or a `text` that is all trained.

    weights: of each message in the loss, 0 for others than the assistant's. rejected: the messages, or the answer,
    of the worse one of a pair, which shares its beginning with the row.
    """

    where: str
    messages: tuple[dict[str, Any], ...] = ()
    weights: tuple[float, ...] = ()
    prompt: str = ""
    answer: str | None = None
    text: str | None = None
    tools: Any = None
    rejected: tuple[dict[str, Any], ...] | str | None = None


class RowError(Exception):
    """What is wrong with one row."""


def read_records(path: Path) -> Iterator[Record | TrainerError]:
    """Yield each row, or the error RM708 that names its line. Empty lines are passed over.

    Raises:
        TrainerError: RM717 where the file cannot be read as JSON rows at all.
    """
    for where, value in _values(path):
        try:
            if isinstance(value, RowError):
                raise value
            yield _record(value, where)
        except RowError as error:
            yield TrainerError("RM708", what=str(error), where=where)


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = file.read(1)
            while first.isspace():
                first = file.read(1)
            file.seek(0)
            yield from _list(file.read(), path) if first == "[" else _lines(file, path)
    except UnicodeDecodeError as error:
        what = f"{path.name} is not UTF-8: byte {error.start} cannot be decoded"
        raise TrainerError("RM717", what=what, where=str(path)) from None
    except (FileNotFoundError, IsADirectoryError) as error:
        raise TrainerError("RM717", what=f"{path} cannot be opened", why=str(error.strerror)) from None


def _lines(file: Any, path: Path) -> Iterator[tuple[str, Any]]:
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
    if not isinstance(row, dict):
        raise RowError(f"a row is an object, not {type(row).__name__}")
    if "chosen" in row and "rejected" in row:
        return _pair(row, where)
    if "messages" in row or "conversations" in row:
        return _conversation(_messages(row), where, tools=_tools(row))
    if "instruction" in row:
        return _conversation(_instruction(row), where)
    if "prompt" in row and "completion" in row:
        if isinstance(row.get("label"), bool):
            raise RowError("label marks good and bad answers (KTO), and a bad one would be trained like a good one")
        return _completion(row["prompt"], row["completion"], where)
    if isinstance(row.get("text"), str):
        return Record(where=where, text=row["text"])
    fields = ", ".join(sorted(map(str, row))) or "none"
    known = "messages, conversations, instruction and output, prompt and completion, prompt, chosen and rejected, text"
    raise RowError(f"no known fields (has: {fields}; known: {known})")


def _tools(row: Mapping[str, Any]) -> Any:
    tools = row.get("tools")
    if isinstance(tools, str) and tools.strip():
        try:
            return json.loads(tools)
        except ValueError as error:
            raise RowError(f"tools is not valid JSON: {error}") from None
    return tools or None


def _messages(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    if row.get("messages") and row.get("conversations") and row["messages"] != row["conversations"]:
        raise RowError("messages and conversations are both there, and differ")
    listed = row.get("messages", row.get("conversations"))
    if not isinstance(listed, list) or not listed:
        raise RowError("messages is not a list of at least one message")
    messages = [_message(each, number) for number, each in enumerate(listed, 1)]
    for system in (row.get("system"), row.get("system_prompt")):
        if isinstance(system, str) and system:
            messages.insert(0, {"role": "system", "content": system})
    return messages


def _message(given: Any, number: int) -> dict[str, Any]:
    """Return a message with role and content, whichever of the two usual pairs of names it has."""
    if not isinstance(given, dict):
        raise RowError(f"message {number} is no object")
    role = given.get("role", given.get("from"))
    role = role.strip().lower() if isinstance(role, str) else role
    content = given.get("content", given.get("value"))
    if not isinstance(role, str) or role not in ROLES:
        raise RowError(f"message {number} has the role {role!r}; known: {', '.join(ROLES)}")
    if isinstance(content, list):
        content = _joined(content, number)
    if content is None and given.get("tool_calls"):
        content = ""
    if not isinstance(content, str):
        raise RowError(f"message {number} has no text as its content")
    rest = {key: value for key, value in given.items() if key not in ("role", "from", "content", "value")}
    return {"role": ROLES[role], "content": content, **rest}


def _joined(parts: Sequence[Any], number: int) -> str:
    """Return the text of a content that is a list of parts, as of multimodal interfaces."""
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise RowError(f"message {number} has a part that is no text")
    return "".join(texts)  # type: ignore[arg-type]


def _instruction(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return an Alpaca row as messages: earlier turns, then instruction and input, then output."""
    for key in ("instruction", "output"):
        if not isinstance(row.get(key), str):
            raise RowError(f"{key} is no text")
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


def _completion(prompt: Any, completion: Any, where: str) -> Record:
    if isinstance(prompt, list) and isinstance(completion, list):
        return _conversation(_messages({"messages": [*prompt, *completion]}), where)
    if not isinstance(prompt, str) or not isinstance(completion, str):
        raise RowError("prompt and completion are neither texts nor lists of messages")
    return Record(where=where, prompt=prompt, answer=completion)


def _conversation(messages: Sequence[dict[str, Any]], where: str, tools: Any = None) -> Record:
    _require_order(messages)
    weights = [_weight(message, number) for number, message in enumerate(messages, 1)]
    bare = tuple({key: value for key, value in each.items() if key not in WEIGHTS} for each in messages)
    return Record(where=where, messages=bare, weights=tuple(weights), tools=tools)


def _weight(message: Mapping[str, Any], number: int) -> float:
    given = next((message[key] for key in WEIGHTS if message.get(key) is not None), 1.0)
    if isinstance(given, bool):
        given = float(given)
    if not isinstance(given, int | float) or not 0 <= given < float("inf"):
        raise RowError(f"message {number} has the weight {given!r}, which is no number of at least 0")
    return float(given) if message["role"] == "assistant" else 0.0


def _require_order(messages: Sequence[Mapping[str, Any]]) -> None:
    roles = [message["role"] for message in messages]
    if "system" in roles[1:]:
        raise RowError(f"message {roles.index('system', 1) + 1} is a system message; only the first may be")
    turns = [role for role in roles if role != "system"]
    if not turns or turns[0] != "user":
        raise RowError(f"the conversation begins with {turns[0] if turns else 'nothing'}, not with the user")
    for number, (one, other) in enumerate(itertools.pairwise(turns), 2):
        if one == other and one != "tool":
            raise RowError(f"two {one} messages follow each other (turn {number})")
    if turns[-1] != "assistant":
        raise RowError(f"the conversation ends with {turns[-1]}, not with an answer of the assistant")


def _pair(row: Mapping[str, Any], where: str) -> Record:
    chosen, rejected = row["chosen"], row["rejected"]
    if chosen == rejected:
        raise RowError("chosen and rejected are the same: the pair prefers nothing")
    if isinstance(row.get("prompt"), str) and isinstance(chosen, str) and isinstance(rejected, str):
        return Record(where=where, prompt=row["prompt"], answer=chosen, rejected=rejected)
    if "instruction" in row:
        before = _instruction({**row, "output": ""})[:-1]
        chosen, rejected = ([{"role": "assistant", "content": each}] for each in (chosen, rejected))
    elif "messages" in row or "conversations" in row:
        before = _messages(row)
    else:
        before = _before(row)
    better, worse = ([*before, *_messages({"messages": _listed(each)})] for each in (chosen, rejected))
    _require_order(worse)
    _require_one_question(better, worse)
    record = _conversation(better, where, tools=_tools(row))
    return Record(**{**vars(record), "rejected": tuple(worse)})


def _require_one_question(better: Sequence[Mapping[str, Any]], worse: Sequence[Mapping[str, Any]]) -> None:
    """Raise RowError where the two answers of a pair are to different conversations: then neither is preferred."""
    absent: Mapping[str, Any] = {}
    for number, pair in enumerate(itertools.zip_longest(better[:-1], worse[:-1], fillvalue=absent), 1):
        one, other = ((each.get("role"), each.get("content")) for each in pair)
        if one != other:
            raise RowError(f"chosen and rejected differ before their last answers, first in message {number}")


def _before(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    prompt = row.get("prompt")
    if isinstance(prompt, str):
        before: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    else:
        before = _messages({"messages": prompt}) if prompt else []
    if _is_whole(row["chosen"]):  # the prompt next to it, as in UltraFeedback, is its first message once more
        there = {str(each["content"]).strip() for each in _messages({"messages": row["chosen"]})}
        return [] if all(str(each["content"]).strip() in there for each in before) else before
    return before


def _is_whole(answer: Any) -> bool:
    """Return whether an answer of a pair is the conversation from its beginning."""
    first = answer[0] if isinstance(answer, list) and answer and isinstance(answer[0], dict) else {}
    return ROLES.get(str(first.get("role", first.get("from"))).strip().lower()) in ("user", "system")


def _listed(answer: Any) -> list[Any]:
    if isinstance(answer, str):
        return [{"role": "assistant", "content": answer}]
    return answer if isinstance(answer, list) else [answer]
