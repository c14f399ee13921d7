# ruff: noqa: E501 (one form a line)
"""Forms of keys and of lists of people in a bundle: words that are random, keys of SSH, tables with a column of users.

A service makes keys of a form of its own faster than a list of forms grows, so that a word is taken out, too, whose
letters and digits alternate as in no word of a failure. Names of functions, kernels and files stay, and hashes, which
have no capital letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# accounts and groups of the system, from which rights are read
_OF_SYSTEM = (
    r"(?:root|video|render|kvm|audio|nobody|nogroup|users|daemon|adm|tty|disk|input|docker|wheel|sudo|staff|nfsnobody)"
)
_STATES = r"(?:R|PD|CG|CD|CA|F|TO|NF|PR|S|ST)"
_WORD = re.compile(r"[A-Za-z0-9]+")
_RUNS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_THREE_KINDS = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])")
LEAST = 18  # letters of a random word
# a word within a name, such as the Winograd of a kernel's: vowels, and never four other letters in a row
_SPOKEN = re.compile(r"(?=.{7})(?!.*[^aeiouy]{4})(?=(?:[^aeiouy]*[aeiouy]){2}).[a-z]*", re.IGNORECASE)
# runs of a word for each of its letters: 99 of 100 random words of 24 letters have 0.33 and more, names of MIOpen's and
# rocBLAS' kernels 0.37 and less; short words differ more
MOST_OF_A_NAME, MOST_OF_A_SHORT_NAME, SHORT, LONG = 0.375, 0.45, 24, 48
_MIXED = re.compile(r"(?P<name>:[ \t]{1,8}[\"']?)(?=[^\s\"']{0,400}\d)(?=[^\s\"']{0,400}[A-Za-z])[^\s\"']{6,4000}")
_PUBLIC_REGISTRIES = r"(?:docker|ghcr|quay|nvcr|gcr)\.io/(?:rocm|amd|library|pytorch|ggml-org|huggingface|vllm|ollama|open-webui|nvidia)/|(?:registry\.)?(?:github|gitlab)\.com/(?:ROCm|pytorch|AMD)\b"
_DISK = r"(?:SSD|HDD|NVMe|nvme\d{1,3}n\d{1,3}|Samsung|WDC|Seagate|Micron|INTEL|KIOXIA|TOSHIBA|SKHynix|Crucial)"


def _random(found: re.Match[str]) -> str:
    """Return `<token>` for a word of which a part is random, else the word."""
    return "<token>" if any(_is_random(part) for part in _WORD.findall(found[0])) else found[0]


def _is_random(part: str) -> bool:
    """Return whether small letters, capitals and digits alternate in a word as in none that a program is made of."""
    if len(part) < LEAST or not _THREE_KINDS.match(part):
        return False
    runs = _RUNS.findall(part)
    most = MOST_OF_A_SHORT_NAME if len(part) < SHORT else MOST_OF_A_NAME
    named = len(part) < LONG and any(_SPOKEN.fullmatch(run) for run in runs)
    return len(runs) / len(part) > most and not named


def _nested(found: re.Match[str]) -> str:
    """Return the lines below a key with the values that mix letters and digits taken out."""
    return _MIXED.sub(r"\g<name><secret>", found[0])


KEYS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # SSH: a public key with its owner's comment, and a known host
    (re.compile(r"(?:^[^\s#]{1,400}[ \t]{1,8})?\b(?:ssh-(?:rsa|dss|ed25519)|(?:sk-)?ecdsa-sha2-[\w-]{1,40}|sk-ssh-[\w@.-]{1,60})[ \t]{1,8}AAAA[\w+/]{16,8000}={0,3}(?:[ \t]{1,8}[^\n]{0,400})?", re.MULTILINE), "<id>"),
    # words of keys, next to which no sign stands
    (re.compile(r"(?P<name>\b(?:password|passphrase|passcode)\s{1,4}(?:is|was|for [\w.-]{1,60} is)\s{1,4}[\"']?)(?=[^\s\"']{0,200}[\dA-Z!@#$%^&*])[^\s\"',;]{4,200}", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>\bpass:)(?=[A-Za-z!-/:-@])[^\s\"']{4,200}"), r"\g<name><secret>"),  # OpenSSL
    (re.compile(r"(?P<name>\b(?:password|passwd|secret|token|passphrase)\s{0,3}[:=]\s{0,3})(?P<sign>'''|\"\"\")(?:(?!(?P=sign))[\s\S]){1,4000}(?P=sign)", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>\b(?:password|passwd|secret|token|passphrase)\s{0,3}:\s{0,3})'(?:[^'\n]|''){1,4000}'(?!')", re.IGNORECASE), r"\g<name><secret>"),  # YAML doubles a quote
    (re.compile(r"(?P<name>\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:digest|aws4-hmac-sha256|ntlm|negotiate|hawk|oauth) )[^\n]{4,4000}", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>^[ \t]{0,20}(?:machine[ \t]{1,8}\S{1,253}[ \t]{1,8})?login[ \t]{1,8})\S{1,200}(?=[ \t]{1,8}password\b)", re.MULTILINE), r"\g<name><name>"),  # .netrc
    (re.compile(r"(?P<name>\b(?:wandb|neptune|comet|clearml|mlflow|sentry|datadog)\b[^\n]{0,120}?[:= ])[0-9a-f]{32,64}\b", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>\bAccountName=)[\w-]{1,100}"), r"\g<name><name>"),
    (re.compile(rf"(?P<name>\b{_DISK}\b[^\n]{{0,60}}?[ _])(?![0-9A-F]{{1,40}}\b)(?=[A-Z0-9]{{0,20}}\d[A-Z0-9]{{0,20}}[A-Z])(?=(?:[A-Z]{{0,20}}\d){{4}})[A-Z][A-Z0-9]{{9,24}}\b"), r"\g<name><id>"),
    # people and groups in tables, and a job's account
    (re.compile(rf"(?P<name>^[dlcbsp-][rwxsStT-]{{9}}[.+@]?[ \t]{{1,8}}\d{{1,9}}[ \t]{{1,8}})(?:(?P<user>{_OF_SYSTEM})|\S{{1,64}})(?P<sign>[ \t]{{1,8}})(?:(?P<group>{_OF_SYSTEM})|\S{{1,64}})(?=[ \t])", re.MULTILINE), lambda found: f"{found['name']}{found['user'] or '<name>'}{found['sign']}{found['group'] or '<name>'}"),
    (re.compile(rf"(?P<name>(?:[=,]|groups )\d{{1,10}}\()(?!{_OF_SYSTEM}\)|<)[^)\n]{{1,64}}(?=\))"), r"\g<name><name>"),
    (re.compile(rf"(?P<name>(?:^|: )[ \t]{{0,20}}\d{{1,12}}(?:_\d{{1,6}})?[ \t]{{1,20}}\S{{1,60}}[ \t]{{1,20}}\S{{1,100}}[ \t]{{1,20}})[\w.-]{{1,64}}(?P<rest>[ \t]{{1,20}}{_STATES}[ \t]{{1,20}}[\d:-]{{3,20}}[ \t]{{1,20}}\d{{1,6}}[ \t]{{1,20}})[^\s(][^\s]{{0,400}}", re.MULTILINE), r"\g<name><name>\g<rest><host>"),  # squeue
    (re.compile(r"(?P<name>(?<!\S)(?:--(?:account|reservation|mail-user|wckey|uid|gid)|-A)[= ])(?=[\w.@-]{0,100}[A-Za-z])(?!<|none\b|null\b|auto\b|root\b)[\w.@-]{1,100}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\b(?:connect(?:ed|ing|ion)?|listen(?:ed|ing)?|b(?:ou|i)nd(?:ing)?|dial(?:ed|ing)?|rendezvous|reach(?:ed|ing)?)(?: (?:to|on|at|with|tcp))? )(?!localhost\b|0x)(?=[\w.-]{0,253}[a-z])[\w.-]{1,253}(?=:\d{2,5}\b)", re.IGNORECASE), r"\g<name><host>"),
    (re.compile(r"^(?P<indent>[ \t]{0,80})[\w.-]{0,40}(?:token|secret|password|passphrase):[ \t]{0,8}\r?\n(?:(?P=indent)[ \t]{1,80}[^\n]{0,400}(?:\n|\Z)){1,40}", re.IGNORECASE | re.MULTILINE), _nested),
    (re.compile(r"(?P<name>(?<![\w/])pwd=[\"']?)(?![/~$<.\"'])[^\s\"'&;]{4,200}", re.IGNORECASE), r"\g<name><secret>"),
    # clouds, clusters, registries
    (re.compile(r"(?P<name>\barn:aws[\w-]{0,20}:)[\w:/*.@+=,-]{4,400}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>(?<![\w.-])projects/)[a-z][a-z0-9-]{4,40}(?=/(?:locations|zones|regions|datasets|secrets|global|serviceAccounts|topics)\b)"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\b(?:kubectl|helm|oc|k9s|argo|flux)\b[^\n|;]{0,200}? -n[ =]?)(?!<)[a-z][\w.-]{0,100}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>^[ \t-]{0,40}(?:namespace|serviceAccountName|nodeName|claimName|queueName):[ \t]{1,8}[\"']?)(?!<)[a-z][\w.-]{0,253}", re.MULTILINE), r"\g<name><name>"),
    (re.compile(rf"(?<![\w.@/-])(?!{_PUBLIC_REGISTRIES})(?:[\w-]{{1,63}}\.){{1,8}}[a-z]{{2,12}}(?::\d{{2,5}})?(?:/[\w.-]{{1,100}}){{2,8}}(?::(?!\d{{1,6}}\b(?!\.))[\w.-]{{1,128}}|@sha256:[0-9a-f]{{64}}|:\d{{1,4}}(?=[\s\"',]|$))(?<!\.py)", re.MULTILINE), "<host>/<path>"),
    # names of hosts and users where their words stand
    (re.compile(r"(?P<name>\blogin as: )[\w.-]{1,64}|(?P<wwn>\b(?:WWN|WWID|naa|eui)[ .:=]{1,4})(?:0x)?[0-9a-f]{16}(?:[0-9a-f]{16})?\b", re.IGNORECASE), lambda found: f"{found['name']}<name>" if found["name"] else f"{found['wwn']}<id>"),
    (re.compile(r"(?P<name>\b[A-Z][A-Z0-9_]{0,30}_(?:USER|USERNAME|LOGIN|HOST|HOSTNAME|NODE|NODENAME|EMAIL|ACCOUNT)[\"']?[=:] ?[\"']?)(?!localhost\b|127\.|0\.0\.0\.0|<|\d{1,12}\b|true\b|false\b)[^\s\"',;<]{2,253}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\b(?:on|from|at) )(?!(?:gfx|mi|rx|cuda|hip|gpu|rank|python|rocm|torch|cpu|card|line|port|step|epoch|numa|node|device|ring|core|slot|level|fp|bf|int|pid|sdma|hbm|ddr|pcie?|gen|v|x|h|a|b|u|i|f)-?\d)[a-z][a-z-]{0,20}\d{2,6}(?=[:,])"), r"\g<name><host>"),
    (re.compile(r"(?P<name>\b(?=[A-Z])[A-Z0-9_]{0,40}(?:SECRET|PASSW|CREDENTIAL|PRIVATE_KEY)[A-Z0-9_]{0,40}[=:] ?[\"']?)(?![/<$]|\d{1,12}\b)[^\s\"',;]{6,4000}"), r"\g<name><secret>"),
    (re.compile(r"(?P<name>(?<!\S)-U[ =]?)[^\s%]{1,64}%\S{1,200}"), r"\g<name><secret>"),  # Samba
    (re.compile(r"(?P<name>\bkey=\"[^\"\n]{0,80}(?:secret|token|password|apikey)[^\"\n]{0,40}\"\s{1,8}value=\")[^\"\n]{1,4000}", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>\bcode=)(?=[\w/.-]{0,400}\d)(?=[\w/.-]{0,400}[A-Za-z])[\w/.-]{16,400}"), r"\g<name><secret>"),
    (re.compile(r"(?P<name>\b(?:Server|Data Source|Host|Addr)=)(?!localhost\b|127\.)[^;\s\"']{1,253}(?=;)", re.IGNORECASE), r"\g<name><host>"),
    (re.compile(r"(?P<name>\b(?:connect(?:ed|ing|ion)? to|reach(?:ed|ing)?|contact) )(?!localhost\b|<)[\w.-]{1,253}(?= port \d)", re.IGNORECASE), r"\g<name><host>"),
    (re.compile(r"(?<![\w.-])[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}(?=: (?:Name or service not known|Temporary failure in name resolution|No address associated|Name does not resolve|nodename nor servname))"), "<host>"),
    (re.compile(r"(?P<name>(?<![\w-])account=)(?!<)[\w.@-]{2,100}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>(?<![\w.>~-])/(?:home|Users)/)[^/\s\"]{1,64}(?=/)"), r"\g<name>user"),
    # addresses before a registry's form takes their end for one
    (re.compile(r"(?<![\w:.])(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}(?:/\d{1,3})?(?![\w:])", re.IGNORECASE), "<address>"),
    (re.compile(r"(?P<name>[A-Za-z]:\\{1,2}Users\\{1,2})[^\\\n\"'<>|:*?]{1,64}(?=\\)", re.IGNORECASE), r"\g<name>user"),
    (re.compile(r"(?<![\w/.:@<-])(?!0x|[\w.]{1,200}\()[A-Za-z0-9][\w.-]{17,400}(?![\w(])"), _random),
)  # fmt: skip
