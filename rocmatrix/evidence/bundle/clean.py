# ruff: noqa: E501 (one form a line)
"""Redaction of text and plain data: names, secrets, addresses, serial numbers and paths; and a check of the result.

`rocmatrix.runtime.redaction` removes what has a form of its own in any log. A bundle leaves the machine whole, so more
is removed here: every absolute path but those of the system, unknown hosts of URLs, and the values of secret variables.
"""

from __future__ import annotations

import re
from typing import Any

from rocmatrix.evidence.bundle.fields import FIELDS
from rocmatrix.evidence.bundle.identity import Identity
from rocmatrix.evidence.bundle.keys import KEYS
from rocmatrix.evidence.bundle.learned import FORMS, Learner
from rocmatrix.evidence.bundle.random_words import without_random_words
from rocmatrix.evidence.bundle.sites import AFTER_PATHS, BEFORE_PATHS
from rocmatrix.runtime.paths import ROOT
from rocmatrix.runtime.redaction import MACHINES, NO_VERSION, SECRETS, redacted

_HOSTS = r"(?:[\w-]+\.)*(?:amd\.com|radeon\.com|pytorch\.org|github\.com|kernel\.org)"
# what is not printed separates a word from its form
_CONTROL = re.compile(r"\x1b(?:\[[0-9;?]{0,40}[A-Za-z]|\][^\x07\n]{0,400}\x07)|[\x00-\x08\x0b-\x1f\x7f]")
_FORMS = (
    *SECRETS,
    (re.compile(r"(?P<name>\bBasic )[^\s\"']{6,4000}", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(rf"(?P<scheme>\b[a-z][a-z0-9+.-]{{1,12}}://)(?!{_HOSTS}(?![\w.-]))(?:[^/\s\"'@]{{0,200}}@)?[\w.\[\]:-]{{1,253}}(?P<rest>(?:/[^\s\"'<>]{{0,2000}})?)", re.IGNORECASE), r"\g<scheme><host>"),
    (re.compile(r"\bgit@[\w.-]{1,253}:\S{1,400}|(?<![\w~])~[a-z_][\w.-]{0,63}/[^\s\"'<>]{0,2000}"), "<path>"),
    (re.compile(rf"(?<![\w.@/-])(?!{_HOSTS}(?![\w.-]))(?:[\w-]{{1,63}}\.){{1,8}}(?:com|net|edu|gov|org)(?![\w-]|\.\w)"), "<host>"),
    (re.compile(r"(?P<name>file://)/?[^\s\"'<>]{1,2000}"), r"\g<name><path>"),
    *MACHINES,
    (re.compile(rf"{NO_VERSION}(?<![\d.])(?!127\.0\.0\.1(?!\d)|0\.0\.0\.0(?!\d))(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?!\.?\d)", re.IGNORECASE), "<address>"),
    (re.compile(r"(?<![\w:])(?:[0-9a-f]{1,4}:){1,7}:(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?(?![\w:])", re.IGNORECASE), "<address>"),
)  # fmt: skip
_VERSION, _VERSIONED = re.compile(r"(?!10\.)\d{1,2}(?:\.\d{1,2}){3}"), ("driver", "version", "firmware", "release")
_SYSTEM = re.compile(
    r"/(?:sys|proc|usr|lib|lib64|bin|sbin|etc|boot|dev(?!/(?:disk|mapper))|opt/rocm[\w.-]*|training|cache|(?:vmlinuz|initrd\.img|initramfs)-[\w.+-]+)(?=/|$)"
)
_QUOTED = re.compile(r"(?P<sign>[\"'`])(?P<path>(?:<home>|<checkout>)?/(?!/)[^\"'`\n]{1,4000})(?P=sign)")
_PATH = re.compile(r"(?:<home>|<checkout>|(?<![\w.>~/-]))/(?!/)(?:\\.|[^\s\"'`<>|;,:()\[\]{}=\\]){1,4000}")
_DRIVE = re.compile(r"\b[A-Za-z]:\\{1,2}[^\s\"'<>|]{1,2000}|\\\\[\w.-]{1,63}\\[^\s\"'<>|]{1,2000}")
_OURS = re.compile(
    r"<checkout>/(?:rocmatrix|trainer|matrix|images|compose|templates|tests|docs|scripts|\.rocmatrix|\w+\.(?:py|yaml))(?=/|$)"
)
_PACKAGES = re.compile(r"/((?:site|dist)-packages/.*)$", re.DOTALL)
_PROGRAM = re.compile(r"/((?:rocmatrix|trainer)/[\w/]{1,200}\.py)$")
_PLACEHOLDER = re.compile(r"<(?:address|checkout|home|host|id|mac|name|path|secret|token|user|uuid)>")


def clean(text: str, identity: Identity) -> str:
    """Return a text that names no person, host, address, serial number or private path, and holds no secret.

    PCI addresses, paths of the system, of packages and of the checkout stay: the failure is read from them.
    """
    text = _without_secrets(_plain(text), identity)
    for folder, short in identity.folders:
        text = re.sub(rf"{re.escape(folder)}(?![\w.-])", short, text, flags=re.IGNORECASE)
    learner = Learner()
    text = learner.apply(text, (*FIELDS, *KEYS, *BEFORE_PATHS, *_FORMS, *FORMS))
    text = _QUOTED.sub(lambda found: f"{found['sign']}{_public(found['path'])}{found['sign']}", text)
    text = _DRIVE.sub("<path>", _PATH.sub(lambda found: _public(found[0]), text))
    text = learner.without_names(learner.apply(text, AFTER_PATHS))
    return without_own_words(without_random_words(redacted(text, ())), identity)


def without_own_words(text: str, identity: Identity) -> str:
    """Return a text without this machine's names and its secrets, in any case: what `leaks` searches for.

    What stands in the place of a value stays: a user may be called `path`.
    """
    pieces = _PLACEHOLDER.split(text)
    between = [*_PLACEHOLDER.findall(text), ""]
    return "".join(_without(piece, identity) + each for piece, each in zip(pieces, between, strict=True))


def _without(text: str, identity: Identity) -> str:
    text = _without_secrets(text, identity)
    for name in identity.names:
        text = _occurrence(name).sub("<name>", text)
    return text


def _plain(text: str) -> str:
    """Return a text without control characters; bytes of a file's name that are no text are written as escapes."""
    return _CONTROL.sub("", text.encode(errors="backslashreplace").decode())


def _without_secrets(text: str, identity: Identity) -> str:
    for secret in identity.secrets:
        text = _any_case(_plain(secret)).sub("<secret>", text)
    return text


def _any_case(word: str) -> re.Pattern[str]:
    return re.compile(re.escape(word), re.IGNORECASE)


def clean_data(value: Any, identity: Identity) -> Any:
    """Return plain data with every text in it, keys too, cleaned."""
    if isinstance(value, str):
        whole = value.startswith("/") and not value.startswith("//") and "\n" not in value
        return clean(_public(value) if whole else value, identity)
    if isinstance(value, dict):
        return {clean(str(key), identity): _clean_value(str(key), each, identity) for key, each in value.items()}
    return [clean_data(each, identity) for each in value] if isinstance(value, list | tuple) else value


def _clean_value(key: str, value: Any, identity: Identity) -> Any:
    """Return a value cleaned; four short numbers under the name of a version are no address."""
    version = isinstance(value, str) and _VERSION.fullmatch(value) and key.lower().endswith(_VERSIONED)
    return without_own_words(value, identity) if version else clean_data(value, identity)


def leaks(text: str, identity: Identity) -> tuple[str, ...]:
    """Return the kinds of what a cleaned text still has of this machine. It searches letters, by none of the forms."""
    left = _PLACEHOLDER.sub("\n", text)
    named = any(_occurrence(name).search(left) for name in identity.names)
    found = {
        "a secret of the environment": any(_any_case(_plain(secret)).search(left) for secret in identity.secrets),
        "a name of the host or its user": named,
        "a private folder": any(_any_case(f"{folder}/").search(left) for folder, _ in identity.folders),
    }
    return tuple(kind for kind, there in found.items() if there)


def _public(path: str) -> str:
    """Return a path that may be shown: one of the system, or of this program, or a package's file from site-packages on."""
    if _SYSTEM.match(path) or _OURS.match(path):
        return path
    packaged = _PACKAGES.search(path) or _PROGRAM.search(path)
    if packaged and packaged.re is _PROGRAM and not (ROOT / packaged[1]).is_file():  # another program's folder
        return "<path>"
    return f"<path>/{packaged[1]}" if packaged else "<path>"


def _occurrence(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?<![a-z0-9])|(?<=%2f)){re.escape(name)}(?![a-z0-9])", re.IGNORECASE)
