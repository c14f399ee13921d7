# ruff: noqa: E501 (one form a line)
"""Fields, rows and sentences of a log whose word names a person, a host, a project or a key, by what stands next to it.

A value such as `thor7` has no form of its own; the key, the column or the sentence around it has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# accounts that come with a system: rights are read from them, and they name no person
_SYSTEM_USER = r"(?:root|video|render|daemon|nobody|systemd-\w{1,20}|message\+?\w{0,4}|www-data|syslog|_apt|kernoops|rtkit|avahi|polkitd|postfix|ollama|docker)"
# as clusters number their machines: lorien-g3, rivendell-07; versions and models (ubuntu-24, llama-3) have no such end
_NUMBERED = r"(?!gfx|flan-|gpt-|rocm|hip|cuda|torch)[a-z][a-z0-9]{2,30}-(?:[a-z]{1,8}-?\d{1,4}|0\d{1,3})(?![\w.-])"
_STATE = r"(?:COMPLETED|COMPLETING|FAILED|TIMEOUT|RUNNING|CANCELLED|OUT_OF_MEMORY|NODE_FAIL|PENDING|PREEMPTED)"
_JOB_WORD = re.compile(r"(?<=\|)(?=[\w.,\[\]-]{0,400}[a-z])[\w.,\[\]-]{1,400}(?=\||$)")
# keys that hold a name wherever they are written: in shells, JSON, YAML, Slurm's and Git's own lists
_KEY = (
    r"(?:user\.name|user\.signingkey|owner|node[ _]?(?:addr|host_?name)|(?:computer|machine)_?name|user_?domain(?:_roamingprofile)?|logonserver"
    r"|_?(?:pod|node|host|cluster|login|user|tenant|org|domain)_?(?:name(?:space)?)|namespace|resource_?group|workspace(?:_?name)?|bucket(?:_?name)?|entity|real_?name|full_?name)"
)
_NO_NAME = r"(?!<|[\[{(]|localhost\b|127\.|0\.0\.0\.0|none\b|null\b|true\b|false\b|default\b|auto\b|unknown\b|at::|gfx\d|\d{1,12}\b|(?:root|video|render|train)\b)"
# makers of models that everyone loads; another's repository names its owner
_MAKERS = r"(?:meta-llama|Qwen|mistralai|google|microsoft|facebook|openai|openai-community|deepseek-ai|unsloth|stabilityai|black-forest-labs|EleutherAI|tiiuae|HuggingFaceTB|bigscience|TinyLlama|amd|nvidia|ibm-granite|allenai|moonshotai|zai-org|runwayml|CompVis|sentence-transformers|lmsys|01-ai|databricks)"


def _job_row(found: re.Match[str]) -> str:
    """Return a row of `sacct -P` without names: states, numbers and times stay."""
    return _JOB_WORD.sub("<name>", found[0])


FIELDS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # keys
    (re.compile(rf"(?P<name>(?<![A-Za-z0-9./-])[\"']?{_KEY}[\"']?[ \t]{{0,3}}[=:][ \t]{{0,3}})(?:(?P<sign>[\"']){_NO_NAME}[^\"'\n]{{2,253}}(?P=sign)|{_NO_NAME}(?=[^\s,;]{{0,253}}[A-Za-z])(?:[A-Z][\w.-]{{1,40}} (?=[A-Z][\w.-]{{1,40}}$))?[\w.@+-]{{2,253}})", re.IGNORECASE | re.MULTILINE), r"\g<name>\g<sign><name>\g<sign>"),
    (re.compile(r"(?P<name>^(?:Namespace|Node|Service Account|Annotations|Controlled By):[ \t]{1,30})(?!<)[^\s]{1,253}", re.MULTILINE), r"\g<name><name>"),
    (re.compile(r"(?P<name>^NAME=)(?=[A-Z0-9-]{0,40}[\d-])[A-Z0-9-]{3,40}$", re.MULTILINE), r"\g<name><name>"),  # Windows' host under WSL
    (re.compile(r"(?P<name>\bDISPLAY=[\"']?)(?!localhost)[A-Za-z][\w.-]{0,253}(?=:\d)"), r"\g<name><host>"),
    (re.compile(r"(?P<name>\bno_proxy[\"']?[=:][ ]?[\"']?)[^\s\"']{1,2000}", re.IGNORECASE), r"\g<name><host>"),
    (re.compile(r"(?P<name>\bname=)[A-Za-z][\w.-]{0,63}(?=:\d{1,3}\b)"), r"\g<name><host>"),  # mdadm
    (re.compile(r"(?P<name>\"auths\"\s{0,3}:\s{0,3}\{\s{0,80}\")[^\"\n]{1,253}"), r"\g<name><host>"),
    (re.compile(r"(?P<name>\((?:uid|cn|mail|sAMAccountName|memberUid)=)(?!\d{1,10}\))[^()\n]{1,200}(?=\))", re.IGNORECASE), r"\g<name><name>"),
    (re.compile(r"(?P<name>(?<!\S)--(?:user(?:name)?|login|owner|author|email|team|org|project|entity|namespace|host(?:name)?|node(?:name)?|server)[= ][\"']?)(?!<|localhost\b|127\.|0\.0\.0\.0|root\b|\d{1,10}(?::\d{1,10})?\b|false\b|true\b|auto\b|none\b)[^\s\"',:]{2,253}", re.IGNORECASE), r"\g<name><name>"),
    # keys of services, by the word before them; fingerprints
    (re.compile(r"(?P<name>\b(?:api|access|secret|account|app|client|license)[-_ ]?keys?(?:[-_ ]?id)?[\"']?\s{0,3}[=: ]\s{0,3}[\"']?)(?=[\w-]{0,400}\d)[\w-]{16,400}", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>\"(?:key|token|auth|pass|sig)\"\s{0,3}:\s{0,3}\")[0-9a-f]{24,128}(?=\")", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>\b(?:using \w{2,12} key|key(?: ID)?|fingerprint(?: is)?:?|pub|sub|sig|signingkey)\s{1,4}(?:\w{2,9}/)?)(?:0x)?(?=[0-9A-F]{0,60}[A-F])[0-9A-F]{16,64}\b"), r"\g<name><id>"),
    (re.compile(r"\b(?:SHA256|MD5):(?=[\w+/]{0,64}[A-Z])(?=[\w+/]{0,64}[a-z])[\w+/]{20,64}={0,2}"), "<id>"),
    (re.compile(r"\b(?:pcsk|lsv2|rpa|wandb_v1|sk_live|pk_live)[_-](?=[\w-]{0,400}\d)(?=[\w-]{0,400}[A-Z])(?=[\w-]{0,400}[a-z])[\w-]{16,400}"), "<token>"),
    (re.compile(r"(?P<name>\bgpg: Good signature from \"|\bgpg: aka \")[^\"\n]{1,200}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\bLU WWN Device Id:\s{1,8})[0-9a-f ]{12,40}", re.IGNORECASE), r"\g<name><id> "),
    (re.compile(r"(?P<name>\b\w{0,30}_?key[\"']?\s{0,3}[=: ]\s{0,3}[\"']?)(?=[0-9a-f]{0,128}\d)(?=[0-9a-f]{0,128}[a-f])[0-9a-f]{24,128}\b", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>(?<![A-Za-z0-9])_?(?:node|actor|worker|machine|boot|cluster|session|pod|instance|container)[-_ ]?id[\"']?[=: ]\s{0,3}[\"']?)(?=[\w-]{0,100}\d)(?=[\w-]{0,100}[a-z])[\w-]{8,100}|(?P<boot>^-- Boot )[0-9a-f]{32}", re.IGNORECASE | re.MULTILINE), lambda found: f"{found['name'] or found['boot']}<id>"),
    (re.compile(r"(?P<name>\baccount )[A-Z]{0,3}\d{5,12}\b|(?P<iban>\bIBAN:? ?)[A-Z]{2}\d{2}(?: ?[\dA-Z]{2,4}){3,8}|(?P<license>\blicen[sc]e(?: key)?:? )[A-Z0-9]{2,20}(?:-[A-Z0-9]{1,20}){3,10}"), lambda found: f"{found['name'] or found['iban'] or found['license']}<id>"),
    (re.compile(r"(?<![\w.+])\+\d{1,3}[ -]\(?\d{1,4}\)?(?:[ -]\d{2,8}){1,4}(?![\w.])"), "<id>"),  # a telephone's number
    (re.compile(r"(?P<name>\bipmitool\b[^\n]{0,200}? -[UP] ?)[^\s\"']{1,200}(?P<rest>(?:[^\n]{0,200}? -P ?)?)(?P<value>[^\s\"']{0,200})"), lambda found: f"{found['name']}<secret>{found['rest']}{'<secret>' if found['rest'] else found['value']}"),
    (re.compile(r"(?P<name>\bclient\.)[\w.-]{1,64}(?= key\b)"), r"\g<name><name>"),
    (re.compile(rf"(?P<name>\b(?:UserId|GroupId)=)(?!{_SYSTEM_USER}\()[\w.-]{{1,64}}(?=\(\d)|(?P<key>\b(?:Account|Comment|Reservation|WCKey)=)(?!\()[^\s,;\"']{{1,200}}"), lambda found: f"{found['name'] or found['key']}<name>"),  # scontrol
    (re.compile(r"(?P<name>\bID_SERIAL(?:_SHORT)?=[\"']?)[^\s\"']{4,200}"), r"\g<name><id>"),  # udev
    (re.compile(r"(?P<name>(?<![\w.-])(?:S/?N|EUI-?64|IMEI|WWID)(?: ?[:=] ?|[ \t]{1,4})[\"']?)(?=[A-Z0-9-]{0,40}\d)(?=[A-Z0-9-]{0,40}\d[A-Z-]{0,4}\d)(?:0x)?[A-Z0-9][A-Z0-9-]{5,40}\b", re.IGNORECASE), r"\g<name><id>"),
    (re.compile(r"(?P<name>^(?:search|domain)[ \t]{1,8})(?=[\w-]{1,63}\.)[\w.-]{3,253}(?:[ \t]{1,8}[\w.-]{1,253}){0,5}$", re.MULTILINE), r"\g<name><host>"),  # resolv.conf
    (re.compile(r"\b(?:[A-Z][\w.'-]{1,40} ){1,3}[A-Z][\w.'-]{1,40}(?= <[^<>\s@]{1,64}@)"), "<name>"),  # before an address of mail
    (re.compile(r"(?P<name>^(?:From|To|Cc|Reply-To):[ \t]{1,8})[^<\n]{1,200}(?=<)", re.MULTILINE), r"\g<name><name> "),
    (re.compile(r"(?P<name>\bacct=[\"']?|[,(]domain=)(?!root\b)[\w.-]{1,64}"), r"\g<name><name>"),  # audit; options of a mount
    # rows of tables: passwd, group, ps, last, sacct, hosts
    (re.compile(rf"^(?!{_SYSTEM_USER}:)[\w.-]{{1,64}}:(?P<rest>[x*!]?:\d{{1,10}}:\d{{1,10}}:)[^:\n]{{0,200}}", re.MULTILINE), r"<name>:\g<rest><name>"),
    (re.compile(r"(?P<name>(?<![\w.-])[\w.-]{1,64}:[x*!]:\d{1,10}:)(?=[a-zA-Z_])[\w.,-]{1,4000}"), r"\g<name><name>"),
    (re.compile(rf"^(?!{_SYSTEM_USER}[ \t])[\w.+-]{{1,32}}(?=[ \t]{{1,20}}\d{{1,9}}[ \t]{{1,8}}\d{{1,5}}\.\d[ \t]{{1,8}}\d{{1,3}}\.\d[ \t]{{1,8}}\d{{1,15}}[ \t])", re.MULTILINE), "<name>"),
    (re.compile(r"^(?P<lead>[ \t]{0,8})[\w.-]{1,64}(?P<rest>[ \t]{1,20}(?:pts/\d{1,5}|tty\w{1,6})[ \t]{1,20})[\w.:-]{1,253}", re.MULTILINE), r"\g<lead><name>\g<rest><host>"),
    (re.compile(rf"(?<![\w|])\d{{3,12}}[\w.+-]{{0,20}}\|[^\n]{{0,2000}}\b{_STATE}\b[^\n]{{0,2000}}"), _job_row),
    (re.compile(r"(?P<name>^(?:\w{1,20}: )?(?:\d{1,3}\.){3}\d{1,3}[ \t]{1,40})(?!localhost)(?=[a-z][\w.-]{0,253}(?:[ \t]|$))[\w.-]{1,253}(?:[ \t]{1,40}[\w.-]{1,253}@?){0,2}", re.MULTILINE), r"\g<name><host>"),
    (re.compile(r"(?P<name>^<\d{1,3}>\d \S{10,40} )[\w.-]{1,253}", re.MULTILINE), r"\g<name><host>"),  # RFC 5424
    (re.compile(r"(?P<name>^[ \t]{0,20}(?:machine|login|account)[ \t]{1,8})(?!<)(?P<value>\S{1,253})(?=\s{1,20}(?:login|password|account)[ \t])", re.MULTILINE), r"\g<name><name>"),  # .netrc over several lines
    (re.compile(r"\b[a-z][a-z-]{1,40}\d{0,4}\[0\d{1,5}(?:[-,]\d{1,6}){1,400}\]"), "<host>"),  # Slurm's list of hosts
    (re.compile(r"^\[(?!rank\d|gfx|<)(?=[\w.-]{0,253}[a-z])[\w.-]{1,253}(?=:\d{2,9}(?::\d{1,9})?\])", re.MULTILINE), "[<host>"),  # Open MPI's lines
    (re.compile(r"(?P<name>\]: \()[\w.-]{1,64}(?=\) (?:CMD|LIST|RELOAD|BEGIN|END)\b)"), r"\g<name><name>"),  # cron
    (re.compile(r"(?P<name>^Author:[ \t]{1,8})(?!<)[^\n<]{1,400}(?=$|\n)", re.MULTILINE), r"\g<name><name>"),
    (re.compile(r"(?<![\w.+$/-])[A-Za-z_][\w.+$-]{0,63}@(?=(?:\d{1,3}\.){3}\d{1,3}\b)"), "<user>@"),
    # sentences
    (re.compile(rf"(?P<name>\bfor user (?!space\b|mode\b|code\b|data\b|input\b|defined\b|level\b)[\"']?|\bof User |\bLogin successful as:? |(?<!Currently )\b[Ll]ogged in as:? |\buser [\"']?(?=[\w.-]{{1,64}}[\"']? (?:is not|NOT|does not|has no|cannot)))(?!{_SYSTEM_USER}\b|<)[\w.@-]{{1,64}}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\bAddress: |\bserver at [\"']?|\bConnection to )(?!localhost\b|127\.|<|0x)(?=[\w.-]{0,253}[a-z])[\w.-]{1,253}(?=[\"']?(?:,? port|,? \(?(?:<address>|(?:\d{1,3}\.){3})| closed| refused| timed out))"), r"\g<name><host>"),
    (re.compile(r"(?P<name>\baccess denied for |\bpull(?:ing)? from |\bpush(?:ing)? to |\bimage [\"'])(?!(?:docker\.io/)?(?:rocm|amd|library|pytorch|rocmatrix)\b|<)(?=[\w.-]{0,253}[./])[^\s\"',]{1,400}"), r"\g<name><path>"),
    (re.compile(r"(?P<name>\bnode |\bhost )(?!<|name\b)(?=[\w.-]{0,100}[a-z])(?:(?=[\w.-]{0,100}\d)[\w.-]{3,100}(?= (?:exited|slots|died|failed|is (?:down|offline|not)|lost))|[\w.-]{3,100}(?= --$))|(?P<key>\bverification failed for )[\w.-]{1,253}(?=\.$|\.?\s)", re.MULTILINE), lambda found: f"{found['name'] or found['key']}<host>"),
    (re.compile(rf"(?P<name>\b(?:on|host|worker|nodes?|server|machine|from|by)(?: |[:=] ?)[\"']?|^\[){_NUMBERED}", re.MULTILINE | re.IGNORECASE), r"\g<name><host>"),
    (re.compile(r"(?P<name>\buser |\bWelcome(?: back)?,? )(?!<)(?=[A-Za-z]{2,40}(?:\d{2,6}\b|!))[A-Za-z]{2,40}\d{0,6}|(?P<key>\bkey:? )[0-9A-Z]{4,6}(?:-[0-9A-Z]{4,6}){2,8}\b|(?P<ssh>(?<![\w~])~/\.ssh/)[^\s\"'<>;|]{1,400}"), lambda found: f"{found['name'] or found['key'] or found['ssh']}{'<path>' if found['ssh'] else '<id>' if found['key'] else '<name>'}"),
    (re.compile(r"(?P<name>\bpod )(?!<)[a-z0-9][\w.-]{0,253}(?= (?:in|on|has|is|of)\b)"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\b(?:in |the )?namespace )(?!<|at::)(?=[a-z0-9-]{0,253}-)[a-z0-9][\w.-]{0,253}|(?P<bucket>\bbucket )(?!<)(?=[a-z0-9.-]{0,63}[-\d])[a-z0-9][a-z0-9.-]{2,62}"), lambda found: f"{found['name'] or found['bucket']}<name>"),
    (re.compile(r"(?P<name>\bwandb: (?:Syncing|Resuming|View) run [^\n(]{1,100}\()[^)\n]{1,200}"), r"\g<name><path>"),
    (re.compile(rf"(?<![\w./-])(?!{_MAKERS}/)[\w.-]{{1,96}}/[\w.-]{{1,96}}(?= is not a (?:local folder|valid model))"), "<path>"),
    (re.compile(r"(?P<name>(?<![\w~/])~/)(?!\.)[^\s\"'<>;|]{1,2000}|(?P<dot>(?<![\w~/])~/\.[\w.-]{1,60}/[\w.-]{1,60}/)(?![\d.]{1,20}(?![\w/]))[^\s\"'<>;|]{1,2000}"), lambda found: f"{found['name'] or found['dot']}<path>"),
)  # fmt: skip
