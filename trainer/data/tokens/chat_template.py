"""Chat templates of model folders, rendered as transformers renders them, and which characters the model answers.

The text that carries loss is found by the template's own {% generation %} marks, or, without marks, by rendering
the conversation up to each answer with and without it, or, where earlier turns are rendered differently once others
follow (Qwen3, DeepSeek and Phi-3 do), by marks around the messages' contents.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.data.tokens.messages import REASONING
from trainer.data.tokens.rendering.environment import compiled
from trainer.data.tokens.rendering.marks import enclosed, spans_of
from trainer.runtime.errors import TrainerError

Message = Mapping[str, Any]
CHATML = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}"
    "{{ '<|im_start|>assistant\\n' }}{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{{ '\\n' }}"
    "{% else %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """A conversation as text, and the characters [begin, end) of each answer in the order of the messages.

    closes: where each answer's own text ends, if `answers` reach up to the next message: then the first stop token from
    there on is the last that the model generates. None where they end with the answer.
    """

    text: str
    answers: list[tuple[int, int]]
    closes: list[int] | None = None


@dataclass(frozen=True, kw_only=True)
class ChatTemplate:
    """A template's text and the special tokens that it may name. `source` names where it came from."""

    text: str
    source: str
    special: Mapping[str, str] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Hash of the template's text, for the metadata."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def has_marks(self) -> bool:
        """Whether the template marks what the model generates."""
        return "endgeneration" in self.text

    def prompt(self, messages: Sequence[Message], tools: Any = None) -> str:
        """Return the text up to the next answer's first character.

        Raises:
            TrainerError: RM706 where the template fails.
        """
        return spans_of(self._render(messages, tools, prompt=True))[0]

    def render(self, messages: Sequence[Message], tools: Any = None) -> Rendered:
        """Return the conversation's text and its answers.

        Raises:
            TrainerError: RM706 where the template fails, leaves an answer's text out, or rewrites turns so that answers
                cannot be found.
        """
        text, marked = spans_of(self._render(messages, tools))
        self._require_prompts(text, messages)
        if self.has_marks:
            rendered = Rendered(text=text, answers=marked)
        else:
            places = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
            found = [self._answer(messages, place, text, tools) for place in places]
            answers = [span for span in found if span is not None]
            whole = len(answers) == len(found)
            rendered = Rendered(text=text, answers=answers) if whole else self._by_contents(messages, text, tools)
        self._require_texts(rendered, messages)
        return rendered

    def _answer(self, messages: Sequence[Message], place: int, text: str, tools: Any) -> tuple[int, int] | None:
        """Return an answer's characters, None where the text does not go on as it did up to there."""
        before = self._render(messages[:place], tools, prompt=True)
        after = self._render(messages[: place + 1], tools)
        return (len(before), len(after)) if after.startswith(before) and text.startswith(after) else None

    def _by_contents(self, messages: Sequence[Message], text: str, tools: Any) -> Rendered:
        """Return answers by marks around each message's content, which the template writes along with it.

        An answer begins where a generation would: reasoning and calls in front of its content, or without any, belong
        to it.
        """
        whole = self._places(messages, text, tools, str.strip)
        places = whole if whole is not None else self._places(messages, text, tools, _own)
        if places is None:
            raise self._not_located()
        answers, closes = [], []
        for number in (number for number, message in enumerate(messages) if message["role"] == "assistant"):
            begin = self._begin(messages, number, text, tools, places)
            following = (each[0] for each in places[number + 1 :] if each)
            answers.append((begin, next(following, len(text))))
            place = places[number]
            closes.append(place[1] if place else begin)
        return Rendered(text=text, answers=answers, closes=closes)

    def _places(
        self, messages: Sequence[Message], text: str, tools: Any, part: Callable[[str], str]
    ) -> list[tuple[int, int] | None] | None:
        """Return the characters of a part of each content, None for an empty one; None where the text has others.

        Args:
            messages: of the conversation.
            text: the whole conversation.
            tools: of the row.
            part: what of a content is looked for.
        """
        contents = [part(str(message["content"])) for message in messages]
        marked = [
            {**message, "content": enclosed(str(message["content"]), core)}
            for message, core in zip(messages, contents, strict=True)
        ]
        again, spans = spans_of(self._render(marked, tools))
        found, expected = [text[begin:end] for begin, end in spans], [each for each in contents if each]
        if again == text and found != expected and messages[0]["role"] == "system":
            # Mistral's write it in front of the last question
            moved = next((n for n in range(len(found)) if [found[n], *found[:n], *found[n + 1 :]] == expected), 0)
            found.insert(0, found.pop(moved))
            spans.insert(0, spans.pop(moved))
        if again != text or found != expected:
            return None
        rest = iter(spans)
        return [next(rest) if content else None for content in contents]

    def _begin(
        self,
        messages: Sequence[Message],
        number: int,
        text: str,
        tools: Any,
        places: Sequence[tuple[int, int] | None],
    ) -> int:
        """Return where an answer begins: behind the prompt to it, else with its content if it has nothing before that.

        Args:
            messages: of the conversation.
            number: of the answer among them.
            text: the whole conversation.
            tools: of the row.
            places: characters of each message's content, None for one without.
        """
        before, place = self._render(messages[:number], tools, prompt=True), places[number]
        upto = place[0] if place else len(text)
        least = max((each[1] for each in places[:number] if each and each[1] <= upto), default=0)
        if text.startswith(before) and least <= len(before) <= upto:
            return len(before)
        if place is None:
            return self._turn(before, text, least)
        content = str(messages[number]["content"]).strip()
        if text[slice(*place)] not in (content, _own(content)):
            raise self._not_located()
        if any(each in text[least : place[0]] for each in _thoughts(messages[number])):
            raise self._not_located()  # what is written of it would carry no loss
        spaceless = text[:upto].rstrip(" ")  # a space that the prompt does not end with belongs to the answer
        return len(spaceless) if spaceless.endswith(before[-8:]) else upto

    def _turn(self, before: str, text: str, least: int) -> int:
        """Return where an answer without text begins that the prompt to it does not lead to: with its first line.

        Prompts of some templates begin to reason (Nemotron 3), and earlier turns have none.

        Args:
            before: the prompt to the answer.
            text: the whole conversation.
            least: end of the contents before it.
        """
        differing = (place for place, (one, other) in enumerate(zip(before, text, strict=False)) if one != other)
        begin = text.rfind("\n", 0, next(differing, len(before))) + 1
        if begin <= least:
            raise self._not_located()
        return begin

    def _not_located(self) -> TrainerError:
        what = "without generation marks the answers cannot be located"
        why = "the template renders a turn differently once others follow it, and contents not as they are"
        next = "Add {% generation %} marks to the template, or train on conversations with one answer."
        return TrainerError("RM706", what=what, where=self.source, why=why, next=next)

    def _require_prompts(self, text: str, messages: Sequence[Message]) -> None:
        """Raise RM706 where a message that is no answer is not in the text, as a system message that is skipped."""
        folded = text.casefold()
        for number, message in enumerate(messages, 1):
            if message["role"] != "assistant" and _longest_word(message).casefold() not in folded:
                what = f"the template leaves the text of message {number} out, which is of the role {message['role']}"
                instead = ", or put the text into the user's first message" if message["role"] == "system" else ""
                next = f"Use a model whose template writes it{instead}."
                raise TrainerError("RM706", what=what, where=self.source, next=next)

    def _require_texts(self, rendered: Rendered, messages: Sequence[Message]) -> None:
        """Raise RM706 where an answer's text is not in it, as by a template that takes lists of parts alone."""
        answers = [each for each in messages if each["role"] == "assistant"]
        if len(answers) != len(rendered.answers):
            return  # reported with both numbers
        for number, (message, (begin, end)) in enumerate(zip(answers, rendered.answers, strict=True), 1):
            inside = rendered.text[begin:end]
            left_out = [] if _longest_word(message) in inside else ["the text"]
            left_out += [f"the call of {name}" for name in _called(message) if name not in inside]
            if message is answers[-1] and any(_longest_of(each) not in rendered.text for each in _thoughts(message)):
                left_out.append("the reasoning")  # of earlier turns most templates leave it out on purpose
            if left_out:
                what = f"the template leaves {left_out[0]} of answer {number} out"
                next = "Use a model whose template writes it, or take it out of the row."
                raise TrainerError("RM706", what=what, where=self.source, next=next)

    def _render(self, messages: Sequence[Message], tools: Any, *, prompt: bool = False) -> str:
        import jinja2

        try:
            template = compiled(self.text)
            text: str = template.render(
                messages=list(messages), tools=tools, add_generation_prompt=prompt, **self.special
            )
            return text
        except jinja2.TemplateSyntaxError as error:
            what = f"the template is not valid at line {error.lineno}: {error.message}"
            raise TrainerError("RM706", what=what, where=self.source) from None
        except Exception as error:  # a template may raise anything that its expressions raise
            why = f"{type(error).__name__}: {error}"
            raise TrainerError(
                "RM706", what="the template fails on this conversation", where=self.source, why=why
            ) from None


def _own(content: str) -> str:
    """Return a content without what it reasons first, which templates leave out of earlier turns."""
    return content.rpartition("</think>")[2].strip()


def _longest_word(message: Message) -> str:
    """Return the longest word of an answer, "" without one or where only tools are called: what no template alters."""
    return _longest_of(_own(str(message["content"])))


def _longest_of(text: str) -> str:
    return max(re.findall(r"\w+", text), key=len, default="")


def _thoughts(message: Message) -> list[str]:
    """Return what a message reasons, in fields of its own and in its content before </think>."""
    content = str(message["content"])
    given = [*(message.get(name) for name in REASONING), content.rpartition("</think>")[0].replace("<think>", "")]
    return [each.strip() for each in given if isinstance(each, str) and each.strip()]


def _called(message: Message) -> list[str]:
    """Return the names of the functions that an answer calls."""
    calls = [each for each in message.get("tool_calls") or () if isinstance(each, Mapping)]
    functions = [each.get("function", each) for each in calls]
    return [str(each["name"]) for each in functions if isinstance(each, Mapping) and each.get("name")]


def read_template(folder: Path, special: Mapping[str, str]) -> ChatTemplate:
    """Return the folder's chat template: chat_template.jinja, or the entry of tokenizer_config.json.

    Raises:
        TrainerError: RM706 where there is none, or several of which none is the default.
    """
    path = folder / "chat_template.jinja"
    if path.is_file():
        return ChatTemplate(text=_text_of(path), source=str(path), special=special)
    config = folder / "tokenizer_config.json"
    entry = _entry(config) if config.is_file() else None
    if isinstance(entry, list):
        named = [each for each in entry if isinstance(each, dict)]
        entry = next((each.get("template") for each in named if each.get("name") == "default"), None)
    if not isinstance(entry, str):
        what = "neither chat_template.jinja nor an entry chat_template in tokenizer_config.json"
        raise TrainerError("RM706", what=what, where=str(folder))
    return ChatTemplate(text=entry, source=str(config), special=special)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # a byte-order mark is no text
    except UnicodeDecodeError as error:
        raise TrainerError("RM706", what=f"{path.name} is not UTF-8", where=str(path), why=str(error)) from None


def _entry(config: Path) -> Any:
    """Return the entry chat_template of tokenizer_config.json, None without one."""
    try:
        content = json.loads(_text_of(config))
    except ValueError as error:
        raise TrainerError(
            "RM706", what=f"{config.name} is not valid JSON", where=str(config), why=str(error)
        ) from None
    return content.get("chat_template") if isinstance(content, dict) else None
