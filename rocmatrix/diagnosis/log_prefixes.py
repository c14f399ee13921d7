"""Prefixes that programs and engines add to the lines of a log: removed, with lines kept apart.

The forms are those of docker compose, the CRI and docker's JSON files, journald and dmesg with their options, Slurm,
mpirun, torchrun, Ray, BuildKit, kubectl and Python's logging, and of a pasted screen: quotes, borders of panes, and
what `script` records of corrected typing. Pages in HTML lose their tags. Every repetition is bounded.
"""

from __future__ import annotations

import re

_ANSI = re.compile(
    rb"(?:\x1b|\\u001b|\\x1b|\\033|\^\[)(?:\[[0-9;?]{0,20}[ -/]{0,2}[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\))", re.I
)
# what tells whether to replace at all: an expression that begins with one byte is searched faster than a text
_ANSI_HINT = re.compile(rb"[\x1b\\^](?:(?<=\x1b)|(?i:u001b|x1b)\[|033\[|\[\[)")
_ANSI_BYTES = (b"\x1b", b"\\", b"^")  # every hint begins with one of them
_CLOCK = rb"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_DAY = rb"\d{4}[-/]\d\d[-/]\d\d"
_LEVEL = rb"(?:DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL)"
_UNIT = rb"(?:[\w.-]{1,64}+ (?:kernel|[\w./@-]{1,64}+\[\d{1,9}\]): )"  # journald: the host, and who printed the line
_DELTA = rb"(?: ?<[ \d.]{1,20}>)?"
_ISO = _DAY + rb"[T ]" + _CLOCK + rb"(?:Z| ?[+-]\d\d:?\d\d| UTC)?[\])]?(?: " + _UNIT + rb")?"
_RANK = rb"rank[ =:]?\d{1,5}\)?[:\]] ?"
_KERNEL = (
    rb"\[ {0,8}\d{1,9}\.\d{3,9}" + _DELTA + rb"\](?: ?\[ {0,6}[TC]\d{1,9}\])?(?: " + _UNIT + rb")?"
)  # dmesg, and journalctl -o short-monotonic and short-delta
# Each begins with one byte or one of some: most lines begin with none of them, and such a form is passed over at once.
# No repetition that stands before another byte gives back what it took (`+` after it).
_PREFIXES = (
    rb"[\[(]" + _ISO,
    _ISO,
    rb"[A-Z][a-z]{2} " + _DAY + rb" " + _CLOCK + rb" [A-Z]{2,5} " + _UNIT + rb"?",  # journalctl -o short-full
    rb"\d{10}\.\d{6} " + _UNIT,  # journalctl -o short-unix
    rb"(?:kern|user|daemon) {0,6}:[a-z]{3,6} {0,4}: ",  # dmesg -x
    rb"\[(?:[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d| {0,8}\+\d{1,9}\.\d{3,9})\]",  # dmesg -e
    rb"(?:>|\xe2\x94[\x82\x83]|\xe2\x95\x91) ",  # a quote, the border of a pane
    rb"(?:stdout|stderr) [FP] ",  # the CRI, after its time
    rb"[\w.-]{1,64}+ {0,40}+\| ",  # docker compose
    rb"\[(?:rank|default|gpu|worker)[ _-]?\d{1,5}\]:? ?",  # torchrun and PyTorch
    rb"\(" + _RANK,
    _RANK,
    rb"\[\d{1,5}(?:,\d{1,5})?\](?:<(?:stdout|stderr)>)?:? ?",  # mpirun --tag-output, concurrently
    rb"\d{1,5}: ",  # srun --label
    rb"\(\w{1,60}(?:\([^)\n]{0,60}\))? pid=\d{1,9}(?:, ip=[\d.a-f:]{1,40})?\) ",  # Ray
    rb"<\d{1,3}>" + _KERNEL,
    _KERNEL,
    rb"\[\w{3} \w{3} [ \d]\d " + _CLOCK + rb" \d{4}\]",  # dmesg -T
    rb"[A-Z][a-z]{2} [ \d]\d " + _CLOCK + rb" (?:[\w.-]{1,64}+ [\w./@-]{1,64}+(?:\[\d{1,9}\])?: )?",  # syslog, journald
    rb"\[" + _CLOCK + rb"\]? ",
    _CLOCK + rb"\]? ",
    rb"#\d{1,5} (?:\d{1,6}\.\d{1,3} )?",  # BuildKit's plain progress
    rb"\[pod/[^\]\n]{1,200}\] ",  # kubectl logs --prefix
    rb"##\[[a-z]{1,10}\]",  # a CI runner
    rb"(?:- |\| )?(?:[\w.]{1,60}+ (?:- |\| |: ))?(?:\["
    + _LEVEL
    + rb"\] |"
    + _LEVEL
    + rb"(?: {1,8}[-|] | {1,8}|: ))",  # logging
    rb"\{\\?\"(?:log|message|msg)\\?\": ?\\?\"",  # docker's json-file, and others that put the text first
    rb"[ \t]{1,200}",
)
_PREFIX = re.compile(rb"\n(?:" + rb"|".join(_PREFIXES) + rb")(?:" + rb"|".join(_PREFIXES) + rb"){0,6}")
_JSON_FIELD = rb', ?\\?"[\w.@-]{1,40}\\?": ?(?:\\?"[^"\n]{0,200}"|[\w.+-]{1,40})'
_JSON_END = re.compile(rb'(?:\\+[nr]){0,2}\\?"(?:' + _JSON_FIELD + rb"){0,8}\}(?=\n)")
_JSON_STARTS = (b'{"log"', b'{"message"', b'{"msg"')
_BYTES_HINT = b'"MESSAGE'
_JSON_BYTES = re.compile(rb'"MESSAGE" ?: ?\[ ?(\d{1,3}(?: ?, ?\d{1,3}){0,20000}) ?\]')
_BORDER = re.compile(rb" {0,300}(?:\xe2\x94[\x82\x83]|\xe2\x95\x91)(?=\r?\n)")
_BORDER_HINT = re.compile(rb"\xe2(?:\x94[\x82\x83]|\x95\x91)")
_TAG = re.compile(rb"<(?:/?[A-Za-z][\w:-]{0,30}(?:\s[^<>\n]{0,500})?/?|!--[^<>\n]{0,500}--)>")
_TAG_HINT = re.compile(rb"<(?:/(?:span|td|pre|code|div|p)>|br ?/?>)")
_ENTITIES = (
    (b"&nbsp;", b" "), (b"&#160;", b" "), (b"&quot;", b'"'), (b"&#34;", b'"'), (b"&#39;", b"'"), (b"&#x27;", b"'"),
    (b"&lt;", b"<"), (b"&gt;", b">"), (b"&amp;", b"&"),
)  # fmt: skip
# characters of other scripts and editors that stand for a blank, or for none
_BLANKS = ((b"\xc2\xa0", b" "), (b"\xe2\x80\xaf", b" "), (b"\xe2\x80\x8b", b""), (b"\xef\xbb\xbf", b""))
_MOST_TYPED_OVER = 20


def _plain(text: bytes) -> bytes:
    """Return lines without what a terminal, a page or a journal makes of characters; each line stays one."""
    ascii_only = text.isascii()
    for mark, plain in () if ascii_only else _BLANKS:
        if mark[:1] in text and mark in text:
            text = text.replace(mark, plain)
    if _TAG_HINT.search(text):
        text = _TAG.sub(b"", text)
        for entity, plain in _ENTITIES:
            text = text.replace(entity, plain)
    if b"\b" in text:
        text = _without_typed_over(text)
    if b"{" in text and _BYTES_HINT in text:
        text = _JSON_BYTES.sub(lambda row: b'"MESSAGE":"' + _characters(row[1]) + b'"', text)
    return _BORDER.sub(b"", text) if not ascii_only and _BORDER_HINT.search(text) else text


def _without_typed_over(text: bytes) -> bytes:
    """Return a text without the characters that a backspace, or a backspace, a blank and another one, took away."""
    for _ in range(_MOST_TYPED_OVER):
        shorter = _rubbed(text)
        if len(shorter) == len(text):
            break
        text = shorter
    return text


def _rubbed(text: bytes) -> bytes:
    """Return a text without what one character and a backspace take; by parts, as a binary file holds a million."""
    parts = iter(text.split(b"\b"))
    kept = [next(parts)]
    for part in parts:
        before = kept[-1]
        if not before or before.endswith(b"\n"):
            kept += (b"\b", part)
            continue
        kept[-1] = before[:-1]
        following = next(parts, None) if part == b" " else None
        kept.append(part if following is None else following)
    return b"".join(kept)


def _characters(numbers: bytes) -> bytes:
    """Return what journald writes as a list of numbers: a message with colours, or not in UTF-8."""
    read = (int(number) for number in numbers.split(b","))
    return bytes(number for number in read if number <= 255 and number not in b"\n")


def views(lines: bytes) -> tuple[bytes, ...]:
    """Return whole lines without decoration, in one or two ways, each with as many lines as came.

    The first is without what stands before each line. As the rest of a wrapped line may look like such a prefix, the
    second still has them.
    """
    text = _plain(b"\n" + lines)
    # one byte is looked for much faster than a text: most logs hold none of these
    if any(byte in text for byte in _ANSI_BYTES) and _ANSI_HINT.search(text):
        text = _ANSI.sub(b"", text)
    if b"{" in text and any(start in text for start in _JSON_STARTS):
        text = _JSON_END.sub(b"", text + b"\n")[:-1]
    bare = _PREFIX.sub(b"\n", text)
    return (bare[1:],) if len(bare) == len(text) else (bare[1:], text[1:])
