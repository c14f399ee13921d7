"""Names of fields as data sets have them: how a row is known by them, and how they are renamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.data.tokens.messages import RowError

# What data sets call a question and an answer to it; under a name of their own they are not trained by guess.
NAMES = (
    ("question", "query", "problem", "prompt", "input", "inputs", "instruction"),
    ("response", "answer", "solution", "target", "targets", "completion", "output"),
)
PAIRS = ("chosen_messages", "rejected_messages", "rejected_response")
NO_NAMES: Mapping[str, str] = {}
MOST_NAMED, MOST_LETTERS = 12, 40  # fields that a message lists, and letters of each
_AS_MESSAGES = 'a row {{"messages": [{{"role": …, "content": …}}, …]}} each: {}'
# A field by which rows of a program's export are known, and how they become conversations.
TOOLS = {
    "mapping": "it is ChatGPT's export; write " + _AS_MESSAGES.format("from current_node up by parent, then reversed"),
    "chat_messages": "it is Claude's export; write " + _AS_MESSAGES.format("sender human is user, and text is content"),
    "contents": "it is Gemini's form; write " + _AS_MESSAGES.format("role model is assistant, and parts are content"),
}


def under_names(row: Any, names: Mapping[str, str]) -> Any:
    """Return a row with its fields renamed. Raises RowError where two fields would have one name."""
    if not isinstance(row, dict):
        return row
    twice = next((new for old, new in names.items() if row.get(old) is not None and row.get(new) is not None), None)
    if twice is not None and twice not in names:
        raise RowError(f"--rename to {twice}: the row has {twice}, too")
    return {names.get(key, key): value for key, value in row.items()}


def under_one_name(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its system message as system, LLaMA-Factory's and ms-swift's pairs as chosen and rejected."""
    row = _with_system(row)
    messages, whole = row.get("messages"), row.get("rejected_messages")
    if "chosen" in row or not (messages or row.get("chosen_messages")):
        return row
    rest = {key: value for key, value in row.items() if key not in PAIRS}
    if isinstance(whole, list):
        chosen = row.get("chosen_messages", messages)
        return {**{key: value for key, value in rest.items() if key != "messages"}, "chosen": chosen, "rejected": whole}
    if isinstance(messages, list) and isinstance(row.get("rejected_response"), str):
        return {**rest, "messages": messages[:-1], "chosen": messages[-1:], "rejected": row["rejected_response"]}
    return row


def _with_system(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose system_prompt, as of OpenOrca, is its system. Raises RowError for two that differ."""
    if "system_prompt" not in row:
        return row
    if row.get("system") and row["system_prompt"] and row["system"] != row["system_prompt"]:
        raise RowError("system and system_prompt are both there, and differ")
    rest = {key: value for key, value in row.items() if key != "system_prompt"}
    return {**rest, "system": row.get("system") or row["system_prompt"]}


def how_to_rename(row: Mapping[str, Any]) -> str:
    """Return what to do with a row of another program, or with a question and an answer under other names."""
    if tool := next((name for name in TOOLS if name in row), None):
        return f"; {TOOLS[tool]}"
    if talk := next((name for name, value in row.items() if _is_talk(value)), None):
        return f"; {rename({talk: 'messages'})}"
    question, answer = (name_among(row, names) for names in NAMES)
    return f"; {rename({question: 'instruction', answer: 'output'})}" if question and answer else ""


def _is_talk(value: Any) -> bool:
    """Return whether a field's value is a list of messages, each with a role and a text."""
    names = [set(each) for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    return len(names) > 1 and all({"role", "content"} <= each or {"from", "value"} <= each for each in names)


def rename(names: Mapping[str, str]) -> str:
    """Return the option that gives fields other names."""
    return "give --rename " + ",".join(f"{old}={new}" for old, new in names.items() if old != new)


def fields_of(row: Mapping[str, Any]) -> str:
    """Return the names of a row's fields, at most a dozen."""
    names = sorted(map(str, row))
    more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (", ".join(each[:MOST_LETTERS] for each in names[:MOST_NAMED]) or "none") + more


def name_among(row: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """Return the field that has the first of the names under which a row has a text, None without one.

    Args:
        row: fields of the row, whose names may begin with capitals, as those of tables do.
        names: names in small letters, the likeliest first.
    """
    known = {str(key).lower(): key for key, value in row.items() if isinstance(value, str)}
    return next((known[name] for name in names if name in known), None)
