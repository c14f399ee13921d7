"""Templates against transformers' own rendering and masks, and templates that fail or hide the answers."""

from __future__ import annotations

import json

import pytest

from trainer.data.tokens.chat_template import CHATML, ChatTemplate, read_template
from trainer.data.tokens.tokenizer import ByteTokenizer
from trainer.runtime.errors import TrainerError

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi <b>&amp;</b>"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Bye"},
    {"role": "assistant", "content": "Grüße 🌍"},
]
PLAIN = CHATML.replace("{% generation %}", "").replace("{% endgeneration %}", "")
REWRITING = (
    "{% for m in messages %}[{{ m.role }}]"
    "{% if loop.last and m.role == 'assistant' %}<think></think>{% endif %}{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def template(text):
    return ChatTemplate(text=text, source="test")


def answers(rendered):
    return [rendered.text[begin:end] for begin, end in rendered.answers]


def test_generation_marks_give_the_answers():
    assert answers(template(CHATML).render(CHAT)) == ["Hello<|im_end|>", "Grüße 🌍<|im_end|>"]


def test_prefix_rendering_without_marks_gives_the_same_text_and_answers():
    marked, plain = template(CHATML).render(CHAT), template(PLAIN).render(CHAT)
    assert plain.text == marked.text
    assert [answer.rstrip("\n") for answer in answers(plain)] == answers(marked)


def test_rendering_and_mask_equal_those_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    for name, content in ByteTokenizer().files().items():
        (tmp_path / name).write_bytes(content)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    ours = read_template(tmp_path, ByteTokenizer().special)
    rendered = ours.render(CHAT)
    assert rendered.text == theirs.apply_chat_template(CHAT, tokenize=False)
    assert ours.prompt(CHAT[:2]) == theirs.apply_chat_template(CHAT[:2], tokenize=False, add_generation_prompt=True)
    out = theirs.apply_chat_template(CHAT, return_assistant_tokens_mask=True, return_dict=True)
    spans = ByteTokenizer().encode(rendered.text).spans
    mask = [int(any(low <= begin < high for low, high in rendered.answers)) for begin, _ in spans]
    assert list(out["assistant_masks"]) == mask


def test_tojson_filter_leaves_html_as_it_is():
    assert template("{{ messages[1].content | tojson }}").prompt(CHAT) == '"Hi <b>&amp;</b>"'


def test_template_that_rewrites_turns_gives_answers_from_their_prompts_on():
    rendered = template(REWRITING).render(CHAT)
    assert rendered.text == template(REWRITING)._render(CHAT, None)
    assert answers(rendered) == ["Hello</s>[user]", "<think></think>Grüße 🌍</s>"]
    assert [rendered.text[:close].endswith(("Hello", "Grüße 🌍")) for close in rendered.closes] == [True, True]
    one = template(REWRITING).render(CHAT[:3])
    assert (answers(one), one.closes) == (["<think></think>Hello</s>"], None)


@pytest.mark.parametrize("change", ["{{ m.content | upper }}", "{{ m.content }}{{ m.content }}"])
def test_template_that_rewrites_turns_and_contents_is_refused(change):
    with pytest.raises(TrainerError) as caught:
        template(REWRITING.replace("{{ m.content }}", change)).render(CHAT)
    assert (caught.value.code, "cannot be located" in caught.value.what) == ("RM706", True)


@pytest.mark.parametrize("trim", ["m.content", "m.content | trim"])
def test_contents_with_space_around_them_are_located_where_a_template_trims_them_and_where_not(trim):
    spaced = [{**each, "content": f" {each['content']}\n"} for each in CHAT]
    rendered = template(REWRITING.replace("m.content", trim)).render(spaced)
    found = [each.replace("<think></think>", "").split("</s>")[0].strip() for each in answers(rendered)]
    assert found == ["Hello", "Grüße 🌍"]


def test_template_that_takes_lists_of_parts_alone_is_refused_as_the_answer_is_left_out():
    parts = "{% for m in messages %}{% for part in m.content %}{% if part.type == 'text' %}{{ part.text }}{% endif %}"
    text = parts + "{% endfor %}<end>{% endfor %}"
    with pytest.raises(TrainerError) as caught:
        template(text).render(CHAT)
    assert (caught.value.code, "leaves the text of message 1 out" in caught.value.what) == ("RM706", True)


def test_template_that_leaves_the_system_message_out_is_refused_with_where_to_put_its_text():
    text = PLAIN.replace("{% for message in messages %}", "{% for message in messages if message.role != 'system' %}")
    assert text != PLAIN
    with pytest.raises(TrainerError) as caught:
        template(text).render([{"role": "system", "content": "Be kind."}, *CHAT[1:]])
    assert (caught.value.code, "message 1" in caught.value.what) == ("RM706", True)
    assert "user's first message" in caught.value.next


REASONING = (
    "{% for m in messages %}[{{ m.role }}]\n{% if m.tool_calls %}<none>{{ m.tool_calls[0].function.name }}{% endif %}"
    "{% if loop.last and '</think>' in m.content %}<think>\n{{ m.content.split('</think>')[0][7:] }}</think>{% endif %}"
    "{{ m.content.split('</think>')[-1] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]\n<think>\n{% endif %}"
)
CALL = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "weather", "arguments": {}}}]}


def test_turns_whose_reasoning_is_left_out_are_located_where_a_prompt_begins_to_reason():
    """As templates of Qwen 3.5 and Nemotron 3 have it: earlier turns without it, calls without text."""
    thought = [{"role": "assistant", "content": f"<think>{word} of{word}</think>{word}"} for word in ("One", "Two")]
    rendered = template(REASONING).render([CHAT[1], thought[0], CHAT[3], thought[1]])
    assert answers(rendered) == ["One</s>[user]\n", "Two ofTwo</think>Two</s>"]
    called = template(REASONING).render([CHAT[1], CALL, {"role": "tool", "content": "sunny"}, thought[1]])
    assert answers(called) == ["<none>weather</s>[tool]\n", "Two ofTwo</think>Two</s>"]


def test_turn_whose_reasoning_is_written_and_would_carry_no_loss_is_refused():
    text = REASONING.replace("loop.last and ", "").replace("<think>\n{{", "<thought>{{")
    with pytest.raises(TrainerError, match="cannot be located"):
        template(text).render([CHAT[1], {"role": "assistant", "content": "<think>One deep</think>One"}, *CHAT[3:]])


def test_call_whose_turn_the_prompt_does_not_reach_is_refused():
    """The prompt to the call still has the reasoning of the turn before, so that both differ from there on."""
    text = REASONING.replace("loop.last and ", "loop.index >= messages | length - 1 and ")
    thought = {"role": "assistant", "content": "<think>One deep</think>One"}
    with pytest.raises(TrainerError, match="cannot be located"):
        template(text).render([CHAT[1], thought, CHAT[3], CALL, {"role": "tool", "content": "sunny"}, CHAT[4]])


@pytest.mark.parametrize(
    "answer", [{"content": "<think>One deep</think>One"}, {"content": "One", "reasoning_content": "One deep"}]
)
def test_template_that_leaves_the_last_answers_reasoning_out_is_refused(answer):
    """As those of DeepSeek R1, EXAONE 4 and Gemma 4: the row's reasoning would not be trained."""
    text = "{% for m in messages %}[{{ m.role }}]{{ m.content.split('</think>')[-1] }}</s>{% endfor %}"
    with pytest.raises(TrainerError) as caught:
        template(text).render([CHAT[1], {"role": "assistant", **answer}])
    assert (caught.value.code, "the reasoning of answer 1" in caught.value.what) == ("RM706", True)


MOVING = (
    "{% set last = messages | selectattr('role', 'equalto', 'user') | list | last %}"
    "{% for m in messages if m.role != 'system' %}{% if m.role == 'user' %}[INST] "
    "{% if m == last and messages[0].role == 'system' %}{{ messages[0].content }}\n\n{% endif %}{{ m.content }}[/INST]"
    "{% else %}{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %} {{ m.content }}</s>{% endif %}"
    "{% endfor %}"
)


def test_answers_are_located_where_the_system_message_stands_before_the_last_question():
    """As templates of Mistral v2 and v3; the space in front of an answer is no part of the prompt to it."""
    assert answers(template(MOVING).render(CHAT)) == [" Hello</s>[INST] Be brief.\n\n", " Grüße 🌍</s>"]


def test_space_that_the_prompt_ends_with_is_no_part_of_the_answer():
    text = REWRITING.replace("[{{ m.role }}]", "[{{ m.role }}] ").replace("[assistant]", "[assistant] <think>")
    assert answers(template(text).render(CHAT))[0].startswith("Hello</s>")


def test_reasoning_in_front_of_an_answer_before_a_moved_system_message_is_refused():
    thought = {**CHAT[2], "reasoning_content": "deep"}
    with pytest.raises(TrainerError, match="cannot be located"):
        template(MOVING).render([*CHAT[:2], thought, *CHAT[3:]])


CALLING = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}"
    "{% endif %}</s>{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)


def test_template_that_mentions_calls_and_leaves_a_call_out_is_refused():
    """As axolotl's command_a.jinja: it asks for tool_calls, and writes the text of the answer alone."""
    call = {"type": "function", "function": {"name": "weather", "arguments": {}}}
    chat = [CHAT[1], {"role": "assistant", "content": "", "tool_calls": [call]}]
    assert answers(template(CALLING).render(chat)) == ["weather</s>"]
    with pytest.raises(TrainerError) as caught:
        template(CALLING.replace("{{ m.tool_calls[0].function.name }}", "")).render(chat)
    assert (caught.value.code, "the call of weather of answer 1" in caught.value.what) == ("RM706", True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{% for %}", "line 1"),
        ("{{ raise_exception('only user turns') }}", "only user turns"),
        ("{{ messages[9].content.x }}", "UndefinedError"),
        ("{{ now('%d') }}", "now"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "SecurityError"),
        ("{{ messages.append(1) }}", "SecurityError"),
    ],
)
def test_template_that_fails_reports_why(text, words):
    with pytest.raises(TrainerError) as caught:
        template(text).render(CHAT)
    assert caught.value.code == "RM706"
    assert words in str(caught.value)


def test_template_is_read_from_either_place_and_hashed(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": PLAIN}))
    old = read_template(tmp_path, {})
    (tmp_path / "chat_template.jinja").write_text(CHATML)
    new = read_template(tmp_path, {})
    assert (old.text, new.text) == (PLAIN, CHATML)
    assert old.sha256 != new.sha256


def test_list_of_templates_takes_the_default_and_refuses_without(tmp_path):
    path = tmp_path / "tokenizer_config.json"
    path.write_text(
        json.dumps({"chat_template": [{"name": "rag", "template": "x"}, {"name": "default", "template": "y"}]})
    )
    assert read_template(tmp_path, {}).text == "y"
    path.write_text(json.dumps({"chat_template": [{"name": "rag", "template": "x"}]}))
    with pytest.raises(TrainerError) as caught:
        read_template(tmp_path, {})
    assert caught.value.code == "RM706"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chat_template.jinja", b"\xe9{{ x }}"),
        ("tokenizer_config.json", b"{"),
        ("tokenizer_config.json", b"[]"),
        ("tokenizer_config.json", b'{"chat_template": ["x"]}'),
        ("tokenizer_config.json", b'{"chat_template": {"default": "x"}}'),
    ],
)
def test_folder_without_a_usable_template_is_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TrainerError) as caught:
        read_template(tmp_path, {})
    assert caught.value.code == "RM706"


def test_mark_of_byte_order_is_no_text_of_a_template(tmp_path):
    (tmp_path / "chat_template.jinja").write_bytes(b"\xef\xbb\xbfA")
    assert read_template(tmp_path, {}).text == "A"
