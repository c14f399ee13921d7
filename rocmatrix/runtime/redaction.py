# ruff: noqa: E501 (one form a line)
"""Redaction of a diagnosis: names of hosts and users, home folders, addresses and tokens are removed."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Callable

from rocmatrix.runtime.sharing import places

# before four numbers that are an address: after the word of a version, only of three digits or of a private network
_NOT_AFTER = r"(?<!version )(?<!version: )(?<!version=)(?<!version\": \")(?<!==)(?<!>=)(?<!<=)(?<!\bv)"
_PACKAGE = "".join(rf"(?<!-cu1\d {{{blanks}}})" for blanks in range(1, 24))  # a column of `pip list`
NO_VERSION = rf"{_PACKAGE}(?:{_NOT_AFTER}|(?=10\.|(?:\d{{1,3}}\.){{0,3}}\d{{3}}))"
_WORD = r"(?:tokens?|secrets?|passw(?:or)?ds?|passphrase|api[_-]?keys?|access[_-]?keys?|secret[_-]?keys?|private[_-]?keys?|credentials?)"
# a quote, also as JSON within JSON, a shell or HTML escapes it
_QUOTE = r"(?:\\{0,8}[\"']|\\{1,4}u0022|\\x22|&quot;|&#(?:34|39|x22|x27);|%2[27])?"
# between a name and its value, as in JSON, a shell, Go, Ruby and an address; a list's bracket, Python's b and r
_SIGN = r"\s{0,3}(?:=>|:=|=(?!>)|:(?!=)|%3[AD])\s{0,3}"
_PREFIX = r"(?:\[\s{0,3}(?=[\"']))?(?:[bru]{1,2}(?=[\"']))?"
_VALUE = (
    r"(?:(?<=\\\")(?:(?!\\{1,8}\")[^\n]){1,4000}|(?<=u0022)(?:(?!\\{1,4}u0022)[^\n]){1,4000}|(?<=\[\")[^\]\n]{1,4000}|(?<=\[')[^\]\n]{1,4000}|(?<=\")(?:\\[^\n]|[^\"\\\n]){1,4000}|(?<=')[^'\n]{1,4000}"
    r"|(?<=&quot;)(?:(?!&quot;)[^\n]){1,4000}|[^\s\"',;]{1,4000})"
)
# a list of token ids, as tokenizers print it: it grants nothing
_IDS = rf"tokens?{_QUOTE}{_SIGN}(?:[\w.]{{1,20}}\()?[\[(]{{1,3}}\s{{0,8}}-?\d{{1,7}}\s{{0,3}}(?:[\])]|,\s{{0,8}}(?:-?\d{{1,7}}\b|\.\.\.))"
_LINE_END = r"(?:\r?\n|(?:\\{1,4}r)?\\{1,4}n)"  # a line's end, also as JSON and shells escape it
# a block of YAML: all lines that are indented deeper than the key
_BLOCK = (
    rf"(?P<name>(?:^|(?<=\\n)|(?<=[\"']))(?P<indent>[ \t]{{0,80}})(?:- )?[\"']?[\w./-]{{0,40}}{_WORD}[\w./-]{{0,40}}[\"']?:[ \t]{{1,8}})(?:[&!][\w!]{{1,40}}[ \t]{{1,8}})?"
    rf"[|>][\d+-]{{0,2}}[ \t]{{0,8}}(?:#(?:(?!{_LINE_END})[^\n]){{0,200}})?"
    rf"(?:{_LINE_END}(?:(?P=indent)[ \t]{{1,80}}(?:(?!{_LINE_END})[^\n]){{0,4000}}|[ \t]{{0,80}}(?={_LINE_END}))){{1,400}}"
)
# JSON within JSON: the value ends at a quote behind exactly as many backslashes as the one that it begins with
_NESTED = rf"(?P<name>{_WORD}(?P<escape>\\{{1,63}})\"\s{{0,3}}:\s{{0,3}}(?P=escape)\")(?:(?!(?<!\\)(?P=escape)\")[^\n]){{1,4000}}"
# a key, and what is indented deeper below it: a value, a list, or a mapping
_KEY = rf"(?P<name>^(?P<indent>[ \t]{{0,80}})(?:- )?[\"']?[\w./-]{{0,40}}{_WORD}[\w./-]{{0,40}}[\"']?[ \t]{{0,3}}[:=][ \t]{{0,8}}\\?(?:#[^\n]{{0,200}})?\r?\n)"
_PAIR = r"[\"']?[\w./-]{1,80}[\"']?[ \t]{0,3}:(?:[ \t]|\r?$)"
_BELOW = rf"{_KEY}(?P<rest>(?:(?P=indent)[ \t]{{1,80}}(?!- |{_PAIR})[^\s][^\n]{{0,4000}}(?:\n|\Z)){{1,40}})"
_ITEMS = rf"{_KEY}(?P<rest>(?:(?P=indent)[ \t]{{0,80}}- (?!{_PAIR})[^\n]{{0,4000}}(?:\n|\Z)){{1,400}})"
_MANY = r"(?:secrets|credentials|passwords|tokens|stringdata|api[_-]?keys)"
_MAPPING = rf"(?P<name>^(?P<indent>[ \t]{{0,80}})[\"']?[\w.-]{{0,40}}{_MANY}[\"']?:[ \t]{{0,8}}\r?\n)(?P<rest>(?:(?P=indent)[ \t]{{1,80}}{_PAIR}[^\n]{{0,4000}}(?:\n|\Z)){{1,400}})"
# a Secret of Kubernetes, whose names are free; `kubectl get` writes its data before its kind
_DATA = rf"(?P<rest>(?:[ \t]{{1,80}}{_PAIR}[^\n]{{0,4000}}(?:\n|\Z)){{1,400}})"
_OF_KUBERNETES = (
    rf"(?P<name>^kind:[ \t]Secret\r?\n(?:(?!data:|---)[^\n]{{0,400}}\n){{0,20}}data:[ \t]{{0,8}}\r?\n){_DATA}",
    rf"(?P<name>^data:[ \t]{{0,8}}\r?\n){_DATA}(?=kind:[ \t]Secret\b)",
)
# what is no value of the key before it: a comment; on the next line an entry, another key, what was taken out already
_NOT_HERE = rf"# |(?<=\n)[ \t]{{0,160}}(?:- |{_PAIR}|<secret>)|(?<=\n[ \t])(?:[ \t]{{0,160}})(?:- |{_PAIR}|<secret>)|(?<=\n[ \t][ \t])(?:[ \t]{{0,160}})(?:- |{_PAIR}|<secret>)"
_NUMBER = re.compile(r"[\"']?(?:-?[\d.]{1,12}|true|false|null|~|<secret>)?[\"']?,?", re.IGNORECASE)
# in brackets on its line, or over several lines as programs print JSON
_LISTS = (
    rf"(?P<name>(?!{_IDS}){_WORD}{_QUOTE}{_SIGN})\[[^\]\n]{{1,4000}}\]",
    rf"(?P<name>(?!{_IDS}){_WORD}\"\s{{0,3}}:\s{{0,3}})\[\s{{1,80}}\"[^\]]{{1,4000}}\]",
)
_NAMED = (
    # a list of names and values, as Kubernetes and ECS have it
    rf"(?P<name>\bname[\"']?\s{{0,3}}:\s{{0,3}}[\"']?[\w.-]{{0,60}}{_WORD}[\w.-]{{0,40}}[\"']?(?:,\s{{0,80}}|\s{{1,80}})[\"']?value[\"']?\s{{0,3}}:[ \t]{{0,8}}[\"']?)[^\n\"',}}]{{1,4000}}",
    # variables whose name ends so, a kubeconfig's key, Docker's logins, .netrc, sshpass, PuTTY's keys
    r"(?-i:(?P<name>\b[A-Z][A-Z0-9_]{1,60}_(?:KEY|PAT|PASS|PWD|AUTH|DSN|CREDS?|SALT)[\"']?(?:=|:[ \t]{0,3})[\"']?))(?=[^\s\"',;]{6})(?!\d{1,12}\b)[^\s\"',;]{1,4000}",
    r"(?P<name>\bclient[-_]?(?:key|certificate)[-_]?data[\"']?\s{0,3}:\s{0,3}[\"']?)[\w+/=-]{8,40000}",
    r"(?P<name>\"(?:auth|identitytoken)\"\s{0,3}:\s{0,3}\")[^\"\n]{1,4000}",
    r"(?P<name>\blogin \S{1,200}\s{1,8}password )\S{1,400}",
    r"(?P<name>\bsshpass -p ?)\S{1,400}",
    r"(?P<name>^private-lines: \d{1,3}\r?\n)(?:[\w+/=]{1,100}(?:\r?\n|\Z)){1,200}",
    r"(?P<name>[?&](?:sig|signature|auth|key|code|x-amz-(?:signature|credential|security-token))=)[^&\s\"']{4,4000}",
    # a header in a dictionary or a pair; a variable by its name in brackets, in a pair, behind a shell's word, in a table
    r"(?P<name>\bauthorization[\"']\s{0,3}[:=,]\s{0,3}b?[\"'](?:(?:basic|bearer|token|digest|negotiate) )?)[^\"'\n]{4,4000}",
    rf"(?P<name>{_WORD}[\"']\]\s{{0,3}}=\s{{0,3}}[bru]{{0,2}}[\"'])[^\"'\n]{{1,4000}}",
    rf"(?P<name>[\"'][\w.-]{{0,60}}{_WORD}[\"'],\s{{0,3}}b?[\"'])(?=[^\"'\s]{{0,400}}\d)[^\"'\s]{{8,4000}}",
    r"(?P<name>\b(?:env|setenv|setx|set -g?x)[ \t]{1,8}(?-i:[A-Z0-9_]{0,60}(?:TOKEN|SECRET|PASSW(?:OR)?D|KEY))[ \t]{1,8}[\"']?)[^\s\"'=]{4,4000}",
    rf"(?P<name>{_WORD}(?<!tokens)[ \t]{{0,80}}[|│┃][ \t]{{0,8}})(?=[^\s|│┃]{{0,400}}\d)(?![\d.,]{{1,40}}[\s|│┃])[^\s|│┃]{{8,400}}",
    rf"(?P<name>{_WORD}=\\\r?\n[ \t]{{0,80}})\S{{4,4000}}",
    rf"(?P<name><[\w:.-]{{0,60}}{_WORD}>)[^<\n]{{1,4000}}(?=</)",
    # connection strings, Ansible, mysql, Weights & Biases, sessions
    r"(?P<name>\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=|;[ ]?pwd=)[^;\s\"']{4,400}",
    r"(?P<name>\b(?:\w{0,40}_)?(?:ssh|become|sudo|smtp|db|ftp|mail|user|root)_pass[\"']?\s{0,3}[:=]\s{0,3}[\"']?)[^\s\"',;]{1,400}",
    r"(?P<name>\bmysql\w{0,8} [^\n]{0,200}?-p)[^\s\"']{1,400}",
    r"(?P<name>\bwandb[\w.]{0,20}(?:[_-]key[\"']?\s{0,3}[:= ]\s{0,3}|\(\s{0,3}key\s?=\s?)[\"']?)[^\s\"',)]{8,400}",
    r"(?P<name>\blogin (?:-t|--relogin) )\S{8,400}",
    r"(?P<name>\b(?:sessionid|JSESSIONID|PHPSESSID)=|\bcookies?\s{0,3}[=:]\s{0,3}\{)[^\s;&}][^;&}\n]{3,4000}",
    r"(?P<name>\bhttps://(?:hooks\.slack\.com/services/|(?:\w{1,12}\.)?discord(?:app)?\.com/api/webhooks/))[\w/-]{8,200}",
)
_TOKENS = (
    r"\b(?:hf|ghp|gho|ghu|ghs|ghr|github_pat|gl(?:pat|rt|dt|ptt|ft|soat|cbt|imt|agent)|nvapi|gsk|r8|do[opr]_v1|api_org|xox[abceprs]|xapp|tskey|lin_api|shp(?:at|ca|pa|ss)|sq0(?:csp|atp)|tvly|GOCSPX|ntn|rubygems|phc|pscale_(?:tkn|pw|oauth)|sbp|PMAK|dckr_oat|xkeysib|CFPAT|figd|whsec|rnd|fly|FlyV1)[_-][\w-]{8,400}",
    r"\bhv[sbr]\.[\w-]{20,400}|\bSG\.[\w-]{16,64}\.[\w-]{16,80}|\bATATT3[\w=-]{16,400}|\bLTAI[A-Za-z0-9]{12,30}\b",
    r"\bsk-(?:ant|proj|or)-[\w-]{8,400}|\bya29\.[\w-]{8,400}|\bAGE-SECRET-KEY-1[A-Z0-9]{20,80}",
    r"\$(?:apr1|2[aby]|argon2\w{1,2}|y|[56])\$[\w./$=,+-]{16,400}",
)
_ROW = re.compile(
    r"(?P<name>[ \t]{0,160}(?:- )?(?:[\"']?[\w./-]{1,80}[\"']?[ \t]{0,3}:[ \t]{1,8})?)(?P<value>[^\n]{0,4000})"
)


def _rows(found: re.Match[str]) -> str:
    """Return a key with its lines, each value taken out; numbers and switches stay."""
    rows = found["rest"].split("\n")
    return found["name"] + "\n".join(_row(row) for row in rows)


def _row(row: str) -> str:
    match = _ROW.match(row.rstrip("\r"))
    if match is None or _NUMBER.fullmatch(match["value"].strip()):
        return row
    return match["name"] + "<secret>" + ("\r" if row.endswith("\r") else "")


# what grants access: in every text that is shared, and in a bundle
SECRETS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(_BLOCK, re.IGNORECASE | re.MULTILINE), r"\g<name><secret>"),
    (re.compile(_NESTED, re.IGNORECASE), r"\g<name><secret>"),
    *((re.compile(form, re.IGNORECASE | re.MULTILINE), _rows) for form in (_ITEMS, _BELOW, _MAPPING, *_OF_KUBERNETES)),
    *((re.compile(form, re.IGNORECASE), r"\g<name>[<secret>]") for form in _LISTS),
    (re.compile(rf"(?P<name>{_WORD}{_QUOTE}{_SIGN})\{{[^}}\n]{{1,4000}}\}}", re.IGNORECASE), r"\g<name>{<secret>}"),
    *((re.compile(form, re.IGNORECASE | re.MULTILINE), r"\g<name><secret>") for form in _NAMED),
    *((re.compile(form), "<token>") for form in _TOKENS),
    (re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S]){0,20000}(?:-----END [A-Z ]{0,40}-----)?"), "<secret>"),
    (re.compile(r"(?:^[\w+/=]{16,76}\r?\n){1,60}(?=-----END [A-Z ]{0,40}PRIVATE KEY)", re.MULTILINE), "<secret>\n"),  # its beginning was cut off
    (re.compile(r"\beyJ[\w-]{8,4000}\.[\w-]{4,4000}(?:\.[\w-]{0,4000})?"), "<token>"),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}|\b(?:gh[opsu]|pypi|npm|dckr_pat|sk|rk)[_-][\w-]{16,400}"), "<token>"),
    (re.compile(r"(?P<name>\b(?:Bearer|Authorization:(?: \w{1,20})?) )[^\s\"']{6,4000}", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>\bBasic )(?=\w[\w+/]{0,400}[A-Z0-9=])[\w+/]{6,4000}={0,2}"), r"\g<name><secret>"),  # a word of prose has no such letter
    (re.compile(r"(?P<name>\b(?:Set-)?Cookie: )[^\n]{1,4000}", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>\b(?:api key|wandb login|huggingface-cli login) )(?=\w{0,400}\d)[\w-]{16,400}", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(rf"(?P<name>(?<![a-z])--?[\w-]{{0,40}}{_WORD}[ =]{_QUOTE})(?:(?<=[ =]\")[^\"\n]{{1,4000}}(?=\")|(?<=[ =]')[^'\n]{{1,4000}}(?=')|(?:(?!\\{{1,8}}\")[^\s\"',]){{1,4000}})", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(rf"(?P<name>(?<!eos_)(?<!bos_)(?<!pad_)(?<!unk_)(?!{_IDS}){_WORD}{_QUOTE}{_SIGN}(?!{_NOT_HERE}){_PREFIX}{_QUOTE})(?![\[{{]?<secret>|<\||\\{{0,8}}[\"'])(?!\d{{1,12}}(?:\.\d+)?(?![\w.@!#$%^&*-])){_VALUE}", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(rf"(?P<name>(?:passw(?:or)?d|passphrase|\bpin){_QUOTE}{_SIGN}{_QUOTE})\d{{1,40}}", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>\blogin\b[^\n]{0,200}? -p |(?<!\S)(?:-u|--user) (?!\d{1,10}:\d{1,10}(?!\S))(?=[^\s:]{1,64}:[^\s/]))\S{1,400}"), r"\g<name><secret>"),
)  # fmt: skip
# an address of IPv6 with groups left out, three at least, or two in brackets: with two a namespace of C++ would be one
_IPV6 = r"(?:[0-9a-f]{1,4}:){2,6}(?::[0-9a-f]{1,4}){1,5}|(?:[0-9a-f]{1,4}:){1}(?::[0-9a-f]{1,4}){2,6}|(?:[0-9a-f]{1,4}:){3,7}:"
# words that end a message's first part, as in `HIP error: `: what is before them is no host
_NO_PROGRAM = (
    r"(?!(?:error|warning|failed|failure|exception|fault|happened|device|code|name|version|status|message|info):)"
)
# what names a machine or its user
MACHINES = (
    (re.compile(rf"(?<![\w:.])(?:{_IPV6})(?![\w:])|(?<=[a-z0-9]:)(?:{_IPV6}|(?:[0-9a-f]{{1,4}}:){{7}}[0-9a-f]{{1,4}})(?=<\d{{1,5}}>)|(?<=\[)[0-9a-f]{{1,4}}::[0-9a-f]{{1,4}}(?=\])", re.IGNORECASE), "<address>"),
    (re.compile(r"(?P<name>\bsession \S{1,40} (?:of|for) user |\bsession (?:opened|closed) for user )(?!root\b)[\w.-]{1,64}(?<!\.)"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\bHostname set to )<[^>\n]{1,253}>"), r"\g<name><host>"),
    (re.compile(r"(?P<name>\bby )(?!root\b|<)[\w.-]{1,64}(?=\(uid=\d)"), r"\g<name><name>"),
    (re.compile(r"^[\w.-]{1,64}(?P<folder>:[\w./~-]{1,200} )[a-z_][\w.-]{0,63}(?=[$%] )", re.MULTILINE), r"<host>\g<folder><user>"),  # a prompt of macOS
    (re.compile(r"(?P<name>\bserial number \([\w ]{1,20}\)\s{0,3}[:=]\s{0,3})\S{4,100}", re.IGNORECASE), r"\g<name><id>"),
    (re.compile(r"(?P<name>\\\\{1,4}wsl(?:\.localhost|\$)\\{1,2}[\w.-]{1,60}\\{1,2}home\\{1,2})[^\\\s\"']{1,64}", re.IGNORECASE), r"\g<name><user>"),
    # clusters and clouds
    (re.compile(r"(?P<name>\bSuccessfully assigned )[a-z0-9][\w.-]{0,253}/[a-z0-9][\w.-]{0,253} to (?:<host>|[\w.-]{1,253})"), r"\g<name><name> to <host>"),
    (re.compile(r"(?P<name>\bcontact slurm controller \()[\w.-]{1,253}(?=[:)])"), r"\g<name><host>"),
    (re.compile(r"(?P<name>\b(?:Name or service not known|Temporary failure in name resolution|No address associated with hostname)[:,]? [\"']?)(?=[\w-]{0,100}[.-])[\w.-]{3,253}"), r"\g<name><host>"),
    (re.compile(r"\barn:aws[\w-]{0,20}:[\w-]{1,40}:[\w-]{0,20}:\d{12}:[^\s\"']{1,400}"), "<name>"),
    (re.compile(r"\b[\w-]{1,63}-\d{12}(?=\.d\.codeartifact\.)|\b\d{12}(?=\.dkr\.ecr\.)"), "<name>"),
    (re.compile(r"(?P<name>\b(?:wandb\.ai|app\.neptune\.ai|comet\.com)/)(?!site/|authorize\b|home\b|docs\b)[\w.-]{1,100}/[\w.-]{1,100}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\bRequest ID: (?:Root=)?)[\w-]{8,100}", re.IGNORECASE), r"\g<name><id>"),
    (re.compile(r"(?P<name>\b(?:srun|slurmstepd|sbatch|mpirun|prterun): (?:error|warning): )[\w.,\[\]-]{1,1000}(?=: tasks?\b)"), r"\g<name><host>"),
    (re.compile(r"(?<= ON )[\w.,\[\]-]{1,1000}(?= CANCELLED\b)"), "<host>"),
    (re.compile(r"(?P<name>\bhost )[\w.-]{1,253}(?= port \d)"), r"\g<name><host>"),
    (re.compile(r"(?P<name>^[ \t]{0,20}host[ \t]{1,20}: )[\w.-]{1,253}", re.MULTILINE), r"\g<name><host>"),
    (re.compile(r"(?P<name>\b(?:SLURM\w{0,40}(?:NODE|HOST|ACCOUNT|USER|CLUSTER|TOPOLOGY_ADDR)\w{0,20}|SBATCH_ACCOUNT|nodelist|e?ssid)[\"']?\s{0,2}[=:]\s{0,3}[\"']?)(?!<)[^\s,;\"']{1,1000}", re.IGNORECASE), r"\g<name><name>"),
    (re.compile(r"(?P<name>\bLinux )[\w.-]{1,64}(?= \d{1,2}\.\d{1,3}\.\d{1,3}\S{0,60} #\d)"), r"\g<name><host>"),  # uname -a
    (re.compile(r"(?P<name>\bwandb: Currently logged in as: )[\w.@-]{1,100}(?: \([\w.@ -]{1,100}\))?"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\b(?:docker|podman|apptainer|singularity|oras|helm|nerdctl|skopeo|buildah|registry) login\b[^\n;|&]{0,200}? (?:-u[ =]?|--user(?:name)?[ =])[\"']?)(?!<)[^\s\"';|&]{1,200}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>(?<![\w-])nodes?[ /][\"']?)(?=[a-z-]{0,100}\d)[a-z][\w.]{0,60}-[\w.]{1,60}-[\w.-]{1,200}(?=[\s\"',:;)/]|$)", re.MULTILINE), r"\g<name><host>"),  # a cluster's
    (re.compile(r"(?<![\w:/.])//[A-Za-z][\w.-]{0,253}/[^\s\"'<>]{1,1000}"), "<path>"),  # a share of a file server
    (re.compile(r"\[[A-Za-z][\w.-]{0,253}\](?=:\d{2,5})"), "[<host>]"),
    (re.compile(r"^[\w.-]{1,64}(?= kernel: (?!registered at))", re.MULTILINE), "<host>"),
    (re.compile(r"\b[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}\.(?:local|lan|internal|intranet|corp|home|localdomain|cluster)\b", re.IGNORECASE), "<host>"),
    (re.compile(r"\b[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}:\d{2,5}(?=/)"), "<host>"),
    (re.compile(r"\bip-\d{1,3}(?:-\d{1,3}){3}\b"), "<host>"),
    (re.compile(rf"(?P<time>\b\d{{4}}-\d\d-\d\dT(?![\d:]{{8}}[.]\d{{7,9}}Z)[\d:.,+Z-]{{8,30}} )(?!(?:HIP|HSA|CUDA|NCCL|RCCL|GPU|CPU|VRAM|Memory|TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b)[\w.-]{{1,64}}(?= {_NO_PROGRAM}[\w./@-]{{1,64}}(?:\[\d{{1,9}}\])?: )"), r"\g<time><host>"),
    (re.compile(r"(?<![/\w.+$-])[A-Za-z_][\w.+$-]{0,63}@(?!sha256:)(?=[\d.-]{0,62}[A-Za-z])[\w.-]{1,63}(?=[:\s]|$)", re.MULTILINE), "<user>@<host>"),
    (re.compile(r"(?P<name>(?<!\bthe )\b(?:hostname|nodename|host|user|username|logname|MASTER_ADDR|rdzv[_-]endpoint)[\"']?\s{0,3}[=:]\s{0,3}[\"']?|\brdzv[_-]endpoint )(?!localhost\b|127\.0\.0\.1|<|(?:no|not|unable|failed|cannot|could) \w)[A-Za-z][\w.-]{0,253}", re.IGNORECASE), r"\g<name><name>"),
    (re.compile(r"\((?!localhost,)[A-Za-z][\w.-]{0,253}(?=, \d{2,5}\))"), "(<host>"),
    (re.compile(r"(?P<name>\b[ug]id=\d{1,10}\()[^)\n]{1,64}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\b(?:\w{0,20}serial(?:[_ -]?(?:number|num|no))?|s/n|asset[_ ]tag|machine[_ -]?id|unique[_ ]?id|\w{0,10}guid|uuid)[\"']?\s{0,30}(?:[:=#]\s{0,30})?[\"']?)(?=[\w-]*\d)(?!<)[\w:.-]{4,100}", re.IGNORECASE), r"\g<name><id>"),
    (re.compile(r"\bGPU-[0-9a-f]{8,32}\b(?!-)", re.IGNORECASE), "GPU-<id>"),
    (re.compile(r"\b[0-9a-f]{2}(?:-[0-9a-f]{2}){5,7}\b|\b[0-9a-f]{2}(?::[0-9a-f]{2}){5,19}\b|\b[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}\b|\benx[0-9a-f]{12}\b", re.IGNORECASE), "<mac>"),
)  # fmt: skip
_FORMS = (
    *SECRETS,
    (re.compile(r"\b(?:hf_|ghp_|github_pat_|sk-|glpat-|xox[bp]-)[\w-]{8,200}"), "<token>"),
    (re.compile(r"\b(?P<name>[\w]{0,40}(?:TOKEN|SECRET|PASSWORD|API_KEY))(?P<sign>[=:] ?)\S{1,200}"), r"\g<name>\g<sign><secret>"),
    (re.compile(r"://[^/\s:@]{0,100}:[^/\s]{1,200}@"), "://<user>:<secret>@"),
    (re.compile(r"(?<=://<user>:<secret>@)(?:[\w-]{1,63}\.){1,8}[\w-]{1,63}"), "<host>"),  # whoever signs in does so at home
    (re.compile(r"\b[\w.+-]{1,64}@(?![A-Z][A-Z0-9]{1,20}_)[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}\b"), "<address>"),
    (re.compile(r"(?P<home>/(?:home|Users|lustre/home|public/home)/|/run/user/|[A-Za-z]:\\{1,2}Users\\{1,2})(?:(?<=\\)[^/\\\n\"':<>]{1,64}(?=\\)|[^/\\\s\"':]{1,64})"), r"\g<home><user>"),
    (re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", re.IGNORECASE), "<mac>"),
    (re.compile(rf"{NO_VERSION}(?<![\w.])(?!127\.|0\.0\.0\.0\b)(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?![\w.])", re.IGNORECASE), "<address>"),
    (re.compile(r"(?<![\w:])(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}(?![\w:])|(?<![\w:])fe80::[0-9a-f:%\w]{1,60}", re.IGNORECASE), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (re.compile(r"(?P<name>\b(?:Serial(?: Number)?|Unique ID|Hostname)\s{0,30}: ?)\S{1,100}", re.IGNORECASE), r"\g<name><id>"),
    (re.compile(r"(?<![\w.@/-])[\w.-]{1,32}@[\w.-]{1,63}(?=:[~/][^\s]{0,200}[$#] | [^\s\]]{1,200}\][$#] )"), "<user>@<host>"),
    (re.compile(rf"(?P<time>[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d )[\w.-]{{1,64}}(?= {_NO_PROGRAM}[\w./@-]{{1,64}}(?:\[\d{{1,9}}\])?: )"), r"\g<time><host>"),
    (re.compile(r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:[+-]\d\d:?\d\d|Z) )[\w.-]{1,64}(?= (?:kernel|[\w./@-]{1,64}\[\d{1,9}\]): )"), r"\g<time><host>"),
    (re.compile(r"(?P<name>\"(?:_HOSTNAME|Hostname|_MACHINE_ID|_BOOT_ID|nodeName|Domainname)\" ?: ?\")[^\"]{1,100}"), r"\g<name><id>"),
    (re.compile(r"\b[\w-]{1,63}(?=:\d{2,9}:\d{2,9} \[\d{1,3}\])"), "<host>"),
    *places.PLACES,
    *MACHINES,
)  # fmt: skip


def redacted(text: str, names: tuple[str, ...] | None = None) -> str:
    """Return a text without what names a person or a machine. `names` are taken out as whole words too.

    Without `names`, this host's and this user's are used. What the text names at one place is removed at each. PCI
    addresses and ports stay.

    Args:
        text: what is to be shared.
        names: whole words that are taken out.
    """
    known = places.known_names(text)
    for form, instead in _FORMS:
        text = form.sub(instead, text)
    for name in (*(own_names() if names is None else names), *known):
        if len(name) > 2:
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "<name>", text)
    return text


def own_names() -> tuple[str, ...]:
    """Return the names of this machine and of its user."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = ""
    return tuple(name for name in (socket.gethostname(), user) if name not in ("root", "localhost", ""))
