"""Programs of chat templates: what they are given, and that each is made once."""

from __future__ import annotations

import pytest

from trainer.data.tokens.chat_template import CHATML, ChatTemplate
from trainer.data.tokens.rendering import environment

CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}] * 3


def template(text):
    return ChatTemplate(text=text, source="test")


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("{{ strftime_now('%d %b %Y') }}", "26 Jul 2024"),
        ("{% if strftime_now is defined %}{{ strftime_now('%d') }}{% else %}own{% endif %}", "own"),
        ("{{ ([1] + messages) | length }}", "7"),
    ],
)
def test_template_gets_one_day_whatever_the_date_and_its_messages_as_a_list(text, rendered):
    assert template(text).prompt(tuple(CHAT)) == rendered


def test_template_is_compiled_once_for_all_conversations(monkeypatch):
    right, made = environment._environment, []
    monkeypatch.setattr(environment, "_environment", lambda: (made.append(1), right())[1])
    environment.compiled.cache_clear()
    for _ in range(3):
        template(CHATML).render(CHAT)
    assert len(made) == 1
