"""Chat templates of model folders, rendered as transformers renders them, and which characters the model answers.

The text that carries loss is found by the template's own {% generation %} marks, or, without marks, by rendering
the conversation up to each answer with and without it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    """A conversation as text, and the characters [begin, end) of each answer in the order of the messages."""

    text: str
    answers: list[tuple[int, int]]


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
        return _spans(self._render(messages, tools, prompt=True))[0]

    def render(self, messages: Sequence[Message], tools: Any = None) -> Rendered:
        """Return the conversation's text and its answers.

        Raises:
            TrainerError: RM706 where the template fails, or rewrites earlier turns so that answers cannot be found.
        """
        text, marked = _spans(self._render(messages, tools))
        if self.has_marks:
            return Rendered(text=text, answers=marked)
        answers = [
            self._answer(messages, place, text, tools)
            for place, message in enumerate(messages)
            if message["role"] == "assistant"
        ]
        return Rendered(text=text, answers=answers)

    def _answer(self, messages: Sequence[Message], place: int, text: str, tools: Any) -> tuple[int, int]:
        before = self._render(messages[:place], tools, prompt=True)
        after = self._render(messages[: place + 1], tools)
        if not (after.startswith(before) and text.startswith(after)):
            what = f"without generation marks the answer in message {place + 1} cannot be located"
            why = "the template renders a turn differently once others follow it"
            next = "Add {% generation %} marks to the template, or train on conversations with one answer."
            raise TrainerError("RM706", what=what, where=self.source, why=why, next=next)
        return len(before), len(after)

    def _render(self, messages: Sequence[Message], tools: Any, *, prompt: bool = False) -> str:
        import jinja2

        try:
            template = _environment().from_string(self.text)
            text: str = template.render(messages=messages, tools=tools, add_generation_prompt=prompt, **self.special)
            return text
        except jinja2.TemplateSyntaxError as error:
            what = f"the template is not valid at line {error.lineno}: {error.message}"
            raise TrainerError("RM706", what=what, where=self.source) from None
        except Exception as error:  # a template may raise anything that its expressions raise
            why = f"{type(error).__name__}: {error}"
            raise TrainerError(
                "RM706", what="the template fails on this conversation", where=self.source, why=why
            ) from None


BEGIN, END = "\ue0f1\ue0f2", "\ue0f3\ue0f4"  # private-use characters that enclose an answer while it is rendered


def _environment() -> Any:
    """Return the environment that transformers gives templates, less the clock: a run must not depend on the day."""
    from jinja2 import nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        tags = frozenset({"generation"})  # type: ignore[assignment]

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("mark"), [], [], body).set_lineno(line)

        def mark(self, caller: Any) -> str:
            return f"{BEGIN}{caller()}{END}"

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    return environment


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    """jinja2's own filter escapes HTML, which a prompt must not be."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _raise(message: str) -> None:
    raise ValueError(message)


def _spans(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text without the enclosing characters, and what they enclosed."""
    clean, spans = "", []
    for part in text.split(BEGIN):
        inside, end, rest = part.partition(END)
        if end:
            spans.append((len(clean), len(clean) + len(inside)))
        clean += inside + rest
    return clean, spans


def read_template(folder: Path, special: Mapping[str, str]) -> ChatTemplate:
    """Return the folder's chat template: chat_template.jinja, or the entry of tokenizer_config.json.

    Raises:
        TrainerError: RM706 where there is none, or several of which none is the default.
    """
    path = folder / "chat_template.jinja"
    if path.is_file():
        return ChatTemplate(text=path.read_text(encoding="utf-8"), source=str(path), special=special)
    config = folder / "tokenizer_config.json"
    entry = json.loads(config.read_text(encoding="utf-8")).get("chat_template") if config.is_file() else None
    if isinstance(entry, list):
        entry = next((each.get("template") for each in entry if each.get("name") == "default"), None)
    if not isinstance(entry, str):
        what = "neither chat_template.jinja nor an entry chat_template in tokenizer_config.json"
        raise TrainerError("RM706", what=what, where=str(folder))
    return ChatTemplate(text=entry, source=str(config), special=special)
