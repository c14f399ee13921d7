"""Characters that enclose a part of a text while it is rendered, and where the part is then."""

from __future__ import annotations

BEGIN, END = "\ue0f1\ue0f2", "\ue0f3\ue0f4"  # of Unicode's private use


def enclosed(content: str, core: str) -> str:
    """Return a content with a part enclosed, and the white space around it, which templates trim, outside.

    Args:
        content: text of a message.
        core: part of it; the last place that has it counts.
    """
    if not core:
        return content
    head, _, tail = content.rpartition(core)
    return f"{head}{BEGIN}{core}{END}{tail}"


def spans_of(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text without the enclosing characters, and what they enclosed."""
    clean, spans = "", []
    for part in text.split(BEGIN):
        inside, end, rest = part.partition(END)
        if end:
            spans.append((len(clean), len(clean) + len(inside)))
        clean += inside + rest
    return clean, spans
