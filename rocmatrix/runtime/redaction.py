# ruff: noqa: E501 (one form a line)
"""A diagnosis fit for others' eyes: names of hosts and users, paths of homes, addresses and tokens are taken out."""

from __future__ import annotations

import getpass
import re
import socket

# before four numbers that are an address: after the word of a version, only of three digits or of a private network
_NOT_AFTER = r"(?<!version )(?<!version: )(?<!version=)(?<!version\": \")(?<!==)(?<!>=)(?<!<=)(?<!\bv)"
NO_VERSION = rf"(?:{_NOT_AFTER}|(?=10\.|(?:\d{{1,3}}\.){{0,3}}\d{{3}}))"
_FORMS = (
    (re.compile(r"\b(?:hf_|ghp_|github_pat_|sk-|glpat-|xox[bp]-)[\w-]{8,200}"), "<token>"),
    (re.compile(r"\b(?P<name>[\w]{0,40}(?:TOKEN|SECRET|PASSWORD|API_KEY))(?P<sign>[=:] ?)\S{1,200}"), r"\g<name>\g<sign><secret>"),
    (re.compile(r"://[^/\s:@]{1,100}:[^/\s@]{1,100}@"), "://<user>:<secret>@"),
    (re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}\b"), "<address>"),
    (re.compile(r"(?P<home>/(?:home|Users|lustre/home|public/home)/|/run/user/|[A-Za-z]:\\{1,2}Users\\{1,2})[^/\\\s\"':]{1,64}"), r"\g<home><user>"),
    (re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", re.IGNORECASE), "<mac>"),
    (re.compile(rf"{NO_VERSION}(?<![\w.])(?!127\.0\.0\.1\b|0\.0\.0\.0\b)(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?![\w.])", re.IGNORECASE), "<address>"),
    (re.compile(r"(?<![\w:])(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}(?![\w:])|(?<![\w:])fe80::[0-9a-f:%\w]{1,60}", re.IGNORECASE), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (re.compile(r"(?P<name>\b(?:Serial(?: Number)?|Unique ID|Hostname)\s{0,30}: ?)\S{1,100}", re.IGNORECASE), r"\g<name><id>"),
    (re.compile(r"(?<![\w.@/-])[\w.-]{1,32}@[\w.-]{1,63}(?=:[~/][^\s]{0,200}[$#] | [^\s\]]{1,200}\][$#] )"), "<user>@<host>"),
    (re.compile(r"(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )[\w.-]{1,64}(?= [\w./@-]{1,64}(?:\[\d{1,9}\])?: )"), r"\g<time><host>"),
    (re.compile(r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:[+-]\d\d:?\d\d|Z) )[\w.-]{1,64}(?= (?:kernel|[\w./@-]{1,64}\[\d{1,9}\]): )"), r"\g<time><host>"),
    (re.compile(r"(?P<name>\"(?:_HOSTNAME|Hostname|_MACHINE_ID|_BOOT_ID|nodeName|Domainname)\" ?: ?\")[^\"]{1,100}"), r"\g<name><id>"),
    (re.compile(r"\b[\w-]{1,63}(?=:\d{2,9}:\d{2,9} \[\d{1,3}\])"), "<host>"),
)  # fmt: skip


def redacted(text: str, names: tuple[str, ...] | None = None) -> str:
    """Return a text without what names a person or a machine. `names` are taken out as whole words too.

    Without `names`, this host's and this user's are used. PCI addresses and ports stay.
    """
    for form, instead in _FORMS:
        text = form.sub(instead, text)
    for name in _own() if names is None else names:
        if len(name) > 2:
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "<name>", text)
    return text


def _own() -> tuple[str, ...]:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = ""
    return tuple(name for name in (socket.gethostname(), user) if name not in ("root", "localhost", ""))
