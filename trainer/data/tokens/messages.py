"""Messages of one row under the names that data sets give them: role, text, weight in the loss, calls of tools.

A field that decides what is trained and that cannot be kept is refused, since other tokens than meant would be trained.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "ai": "assistant",
    "chatgpt": "assistant",
    "chatbot": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "observation": "tool",
    "function": "tool",
    "function_response": "tool",
    "tool_response": "tool",
    "ipython": "tool",
}
# Of a message: OpenAI's name, LLaMA-Factory's; axolotl's and ms-swift's switches, which are true or false.
WEIGHTS = ("weight", "loss_weight", "train", "training", "trainable", "loss", "loss_mask")
REASONING = ("reasoning_content", "reasoning", "thinking")
# Fields that hold nothing where they are absent, empty or null, and what each means otherwise.
OF_MESSAGE = {
    "function_call": "the older form of tool_calls; write it as tool_calls",
    "train_detail": "which parts of a message are trained; a whole message has a weight",
    "train_details": "which parts of a message are trained; a whole message has a weight",
    "images": "what a model of text alone does not read",
}
OF_ROW = {
    **dict.fromkeys(("image", "images", "audio", "audios", "video", "videos"), "what a model of text does not read"),
    "functions": "the older form of tools; write them as tools",
    **dict.fromkeys(  # but next to messages, see `field_names.under_one_name`
        ("rejected_response", "rejected_responses", "rejected_messages", "rejected_conversations", "rejected_output"),
        "the worse answer of a pair; name the two chosen and rejected",
    ),
}
TRANSCRIPT = re.compile(r"\s*(?:^|\n\n)(Human|Assistant):")
VERDICTS = ("label", "kto_tag")
VERDICT_WORDS = {
    **dict.fromkeys(("true", "good", "desirable", "chosen"), True),
    **dict.fromkeys(("false", "bad", "undesirable", "rejected"), False),
}


PYTHON = re.compile(r"\s*\[?\s*\{'(role|from|content|value)':")
NUMBER = re.compile(r"-?\d{1,9}(\.\d{1,9})?")


class RowError(Exception):
    """What is wrong with one row."""


def require_trainable(row: Mapping[str, Any]) -> None:
    """Raise RowError for a field of a conversation that its messages do not hold."""
    _require_none(row, OF_ROW, "the row")


def verdict_of(row: Mapping[str, Any]) -> bool | None:
    """Return whether a row's answer is marked good or bad (KTO), None where it is not.

    A mark is true, a number that is 0 or 1, or a word of VERDICT_WORDS.

    Raises:
        RowError: for a whole number beyond 0 and 1, and for two marks that differ.
    """
    found = {name: _verdict(row.get(name), name) for name in VERDICTS}
    marks = {mark for mark in found.values() if mark is not None}
    if len(marks) > 1:
        raise RowError(f"{' and '.join(found)} differ in whether the answer is good")
    return next(iter(marks), None)


def _verdict(value: Any, name: str) -> bool | None:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in VERDICT_WORDS or not word:
            return VERDICT_WORDS.get(word)
        if NUMBER.fullmatch(word):  # every cell of a table is a text
            return _verdict(float(word) if "." in word else int(word), name)
        if name == "kto_tag":  # a label may be of another meaning
            raise RowError(
                f"kto_tag is {value!r}: true or desirable marks a good answer, false or undesirable a bad one"
            )
        return None
    if value in (0, 1) and isinstance(value, bool | int | float):
        return bool(value)
    if type(value) is int:
        raise RowError(f"{name} is {value}: 1 marks a good answer, 0 a bad one (KTO)")
    return None


def _require_none(given: Mapping[str, Any], fields: Mapping[str, str], owner: str) -> None:
    for name, meaning in fields.items():
        if given.get(name):
            raise RowError(f"{owner} has {name}: {meaning}")


def tools_of(row: Mapping[str, Any]) -> Any:
    """Return a row's tools, None without any. Raises RowError where their text is no JSON."""
    tools = row.get("tools")
    if isinstance(tools, str) and tools.strip():
        try:
            return json.loads(tools) or None
        except ValueError as error:
            raise RowError(f"tools is not valid JSON: {error}") from None
    return tools or None


def options_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row gives its chat template by name, as enable_thinking; TRL's chat_template_kwargs.

    Raises:
        RowError: for what is no object, and for a name that the row has a field of its own for.
    """
    given = row.get("chat_template_kwargs") or {}
    if not isinstance(given, dict):
        raise RowError("chat_template_kwargs is no object")
    if own := next((name for name in ("messages", "tools", "add_generation_prompt") if name in given), None):
        raise RowError(f"chat_template_kwargs has {own}, which is no option of a template")
    return {name: value for name, value in given.items() if value is not None}


def messages_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a row, a system message of its own field first. Raises RowError for what are none."""
    if row.get("messages") and row.get("conversations") and row["messages"] != row["conversations"]:
        raise RowError("messages and conversations are both there, and differ")
    listed = _listed(row.get("messages", row.get("conversations")))
    if not isinstance(listed, list) or not listed:
        raise RowError("messages is not a list of at least one message")
    messages = [_message(each, number) for number, each in enumerate(listed, 1)]
    for name in ("system", "system_prompt"):
        if system := system_of(row.get(name), name):
            messages.insert(0, {"role": "system", "content": system})
    return messages


def _listed(given: Any) -> Any:
    """Return messages, also of their JSON as a text, as columns of tables have them. Raises RowError for another text.

    Args:
        given: value of the field messages.
    """
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        raise RowError("messages is a text, and no JSON of a list of at least one message") from None


def require_json(row: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise RowError for messages in Python's notation, as str() and pandas' to_csv write lists.

    Args:
        row: fields of the row.
        names: fields that may hold messages.
    """
    for name in names:
        if isinstance(value := row.get(name), str) and PYTHON.match(value):
            raise RowError(f"{name} is a list in Python's notation, as str() writes it; write JSON, by json.dumps")


def system_of(given: Any, name: str) -> str:
    """Return the text of a row's own system message, also of a list of its parts; empty without one.

    Args:
        given: value of the field.
        name: name of the field.
    """
    if isinstance(given, str) or not given:
        return given or ""
    texts = [part.get("text") if isinstance(part, dict) else part for part in given] if isinstance(given, list) else []
    if not texts or not all(isinstance(text, str) for text in texts):
        raise RowError(f"{name} is neither a text nor a list of texts")
    return "".join(map(str, texts))


def _message(given: Any, number: int) -> dict[str, Any]:
    """Return a message with role and content, whichever of the two usual pairs of names it has."""
    if not isinstance(given, dict):
        raise RowError(f"message {number} is no object")
    given = {key: value for key, value in given.items() if value is not None}  # templates ask what is there
    role = given.get("role", given.get("from"))
    role = role.strip().lower() if isinstance(role, str) else role
    content = given.get("content", given.get("value"))
    if not isinstance(role, str) or role not in ROLES:
        raise RowError(f"message {number} has the role {role!r}; known: {', '.join(ROLES)}")
    _require_none(given, OF_MESSAGE, f"message {number}")
    parts: dict[str, Any] = {}
    if isinstance(content, list):
        content, parts = _joined(content, number)
    if content is None and given.get("tool_calls"):
        content = ""
    if not isinstance(content, str):
        raise RowError(f"message {number} has no text as its content")
    rest = {key: value for key, value in given.items() if key not in ("role", "from", "content", "value")} | parts
    if role == "function_call":
        return {"role": "assistant", "content": "", "tool_calls": _calls(content, number), **rest}
    return {"role": ROLES[role], "content": content, **rest}


def _calls(content: str, number: int) -> list[dict[str, Any]]:
    """Return the calls of a message of the role function_call, JSON of one or of several, as tool_calls."""
    try:
        read = json.loads(content)
    except ValueError:
        read = None
    calls = read if isinstance(read, list) else [read]
    if not calls or not all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in calls):
        raise RowError(f"message {number} is a function_call, and not JSON with name and arguments")
    functions = [{"name": each["name"], "arguments": each.get("arguments", {})} for each in calls]
    return [{"type": "function", "function": each} for each in functions]


def _joined(parts: Sequence[Any], number: int) -> tuple[str, dict[str, Any]]:
    """Return the text of a content that is a list of parts, as of multimodal interfaces, and fields of other parts.

    LLaMA-Factory's parts have a value, and may be reasoning or a call of a tool.
    """
    texts: list[str] = []
    fields: dict[str, Any] = {}
    for part in parts:
        given = part if isinstance(part, dict) else {"text": part}
        value, kind = given.get("text", given.get("value")), given.get("type", "text")
        if not isinstance(value, str) or kind not in ("text", "reasoning", "tool_call"):
            raise RowError(f"message {number} has a part that is no text")
        if kind == "reasoning":
            fields["reasoning_content"] = fields.get("reasoning_content", "") + value
        elif kind == "tool_call":
            fields["tool_calls"] = [*fields.get("tool_calls", []), *_calls(value, number)]
        else:
            texts.append(value)
    return "".join(texts), fields


def transcribed(text: Any) -> Any:
    """Return the messages of a transcript as HH-RLHF has them, what is none as it is.

    Args:
        text: "\n\nHuman: …\n\nAssistant: …", or an answer of another form.
    """
    if not isinstance(text, str) or not TRANSCRIPT.match(text):
        return text
    _, *parts = TRANSCRIPT.split(text)
    turns = zip(parts[::2], parts[1::2], strict=True)
    return [{"role": "user" if who == "Human" else "assistant", "content": turn.strip()} for who, turn in turns]


def weight_of(message: Mapping[str, Any], number: int) -> float:
    """Return what an answer weighs in the loss, 0 for other messages. Raises RowError for what is no weight.

    Args:
        number: place of the message, counted from 1.
    """
    given = next((message[key] for key in WEIGHTS if message.get(key) is not None), 1.0)
    if isinstance(given, bool):
        given = float(given)
    if not isinstance(given, int | float) or not 0 <= given < float("inf"):
        raise RowError(f"message {number} has the weight {given!r}, which is no number of at least 0")
    return float(given) if message["role"] == "assistant" else 0.0


def require_order(messages: Sequence[Mapping[str, Any]]) -> None:
    """Raise RowError where the turns are not the user's and the assistant's in turn, or no answer ends them."""
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
