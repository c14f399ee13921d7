# ruff: noqa: E501 (one form a line)
"""Forms of programs' output in which a machine or a person has a fixed place: journals, clusters, schedulers, shells.

A form here is of one program. What has a form of its own in any log, as an address has, stands in
`rocmatrix.runtime.redaction`.
"""

from __future__ import annotations

import re

_HOST = r"[A-Za-z0-9][\w.-]{0,253}"
_WHO = r"(?!root\b|\$|<)[A-Za-z_][\w.-]{0,63}"
_HARDWARE = r"(?!x86_64\b|amd64\b|aarch64\b|arm64\b|localhost\b|127\.|0\.0\.0\.0|<)"
_SOURCE = r"(?![\w.-]{1,200}\.(?:py|cpp|cc|c|hip|cu|h|hpp|rs|go|js|ts):)"
# the keys of a collector or a scheduler that hold a machine or a person, as JSON has them
_KEYS = r"(?:[\w.]{1,40}[._-])?(?:host[._-]?name|node[._-]?name|machine[._-]?name|computer(?:[._-]?name)?|user[._-]?name|host|node|instance|machine|owner|account|author|agent|hostIP|podIP|reportingInstance)"
PLACES = (
    # journals
    (re.compile(r"(?P<name>^[ \t]{0,8}_?(?:HOSTNAME|MACHINE_ID|BOOT_ID|_HOSTNAME|_MACHINE_ID|_BOOT_ID)=)(?!<)\S{1,253}", re.MULTILINE), r"\g<name><id>"),
    (re.compile(rf"(?P<name>^\[[ \d]{{1,12}}\.\d{{6}}\] ){_HOST}(?= [\w./@-]{{1,64}}(?:\[\d{{1,9}}\])?: )", re.MULTILINE), r"\g<name><host>"),
    (re.compile(rf"(?P<name>^<\d{{1,3}}>1 \S{{1,64}} ){_HOST}(?= )", re.MULTILINE), r"\g<name><host>"),
    (re.compile(rf"(?P<name>\b(?:sudo|su|sshd|login|cron|CRON)(?:\[\d{{1,9}}\])?:[ \t]{{1,12}}){_WHO}(?= : TTY=)"), r"\g<name><user>"),
    (re.compile(r"(?P<name>\b[UG]ID: \d{1,10} \()[^)\n]{1,64}"), r"\g<name><name>"),
    # Kubernetes
    (re.compile(rf"(?P<name>^Node:[ \t]{{1,24}}){_HARDWARE}{_HOST}(?=/)", re.MULTILINE), r"\g<name><host>"),
    (re.compile(rf"(?P<name>\bkubelet, ){_HOST}"), r"\g<name><host>"),
    (re.compile(r"(?P<name>^(?:Namespace|Service Account):[ \t]{1,24}|\"namespace\": ?\")(?!default\b|kube-system\b|<)[\w.-]{1,253}", re.MULTILINE), r"\g<name><name>"),
    # Slurm
    (re.compile(r"(?P<name>\b(?:UserId|GroupId)=)(?!root\b|video\b|render\b|<)[\w.@-]{1,64}(?=\(\d)"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\b(?:BatchHost|ReqNodeList|ExcNodeList|SubmitHost|AllocNode:Sid|MailUser|Account)=)(?!\(null\)|<)\S{1,400}"), r"\g<name><name>"),
    # launchers of several machines
    (re.compile(rf"(?P<name>(?:^|>: ?)\[){_SOURCE}(?!rank\d|default\d|local\d|PID:|pid:)(?:(?=[a-z-]*\d|[a-z]+-)[a-z][a-z0-9-]{{1,62}}(?=:\d{{3,7}}\])|(?=[A-Za-z]){_HOST}(?=:\d{{3,7}}\] (?:\*\*\*|Signal|Failing at|\[ ?\d|\d+ more process)))", re.MULTILINE), r"\g<name><host>"),
    (re.compile(r"(?P<name>\[?\bprterun-)[\w.-]{1,200}(?=-\d{1,9}@)"), r"\g<name><host>"),
    (re.compile(rf"(?P<name>^[ \t]{{0,8}}(?:Local host|Remote host|Host|Node|Node name|Machine|Hostname|Machine name|Runner name):[ \t]{{1,24}}){_HARDWARE}(?=[A-Za-z]){_HOST}(?=[ \t]*(?:\(|$))", re.MULTILINE), r"\g<name><host>"),
    (re.compile(r"(?P<name>\b(?:Machine|Runner|Computer|Host) name: ')[^'\n]{1,253}"), r"\g<name><host>"),
    (re.compile(rf"(?P<name>\b(?:listening on|connect(?:ed|ing)? to|connection to|connect to|reach) )(?!localhost\b|127\.|0\.0\.0\.0|\d){_HOST}(?=:\d{{2,5}}\b)"), r"\g<name><host>"),
    (re.compile(rf"(?P<name>(?<![\w-])--?(?:master[_-]addr|main_process_ip|head[_-]node|node-?list|hosts?|nodes?)[ =])(?!\d|\$|localhost\b|<)(?=[\w.,\[\]-]*\d){_HOST}"), r"\g<name><host>"),
    (re.compile(rf"(?P<name>\bon node ){_HARDWARE}(?=[\w.-]*\d)(?=[A-Za-z]){_HOST}(?= )"), r"\g<name><host>"),
    (re.compile(rf"^(?:[\w-]{{1,40}}: )?(?=[A-Za-z]){_HOST}(?P<name>[ \t]{{1,8}}slots=\d)", re.MULTILINE), r"<host>\g<name>"),
    (re.compile(rf"(?P<name>^(?:fatal|ok|changed|failed|skipping|unreachable|rescued|ignored): \[){_HARDWARE}{_HOST}(?=[\] ])", re.MULTILINE), r"\g<name><host>"),
    (re.compile(rf"^{_HARDWARE}{_HOST}(?P<name>[ \t]{{1,40}}: ok=\d)", re.MULTILINE), r"<host>\g<name>"),
    # runners
    (re.compile(r"(?P<name>^[ \t]{1,4}on )\S{1,200}(?P<token> )[\w-]{6,40}(?P<rest>,? system ID: )\S{1,60}", re.MULTILINE), r"\g<name><host>\g<token><id>\g<rest><id>"),
    (re.compile(rf"(?P<name>\bRunning on \S{{1,200}} via )(?!<){_HOST}(?=\.\.\.)"), r"\g<name><host>"),
    (re.compile(rf"(?P<name>\bRunning on )(?!<){_HOST}(?= in [/A-Z])"), r"\g<name><host>"),
    (re.compile(r"(?P<name>\bStarted by user )(?!<)[^\n]{1,100}"), r"\g<name><name>"),
    # collectors
    (re.compile(rf"(?P<name>\"{_KEYS}\" ?: ?\"){_HARDWARE}(?=[A-Za-z])(?!all\"|none\"|null\"|true\"|false\")[^\"\s]{{1,253}}(?=\")", re.IGNORECASE), r"\g<name><name>"),
    (re.compile(rf"(?P<name>\"key\" ?: ?\"(?:{_KEYS}|process\.owner|enduser\.id)\", ?\"value\" ?: ?{{\"stringValue\" ?: ?\"){_HARDWARE}[^\"]{{1,253}}"), r"\g<name><name>"),
    # shells and terminals
    (re.compile(r"(?P<name>^(?:Username|RunAs User): )(?!<name>$)[^\r\n]{1,200}", re.MULTILINE), r"\g<name><user>"),
    (re.compile(rf"(?P<name>[\"'(;]){_WHO}@(?=[\w.-]{{0,62}}[A-Za-z])[\w.-]{{1,63}}(?=: ?[~/]|[\"')>]|&[lg]t;|&quot;)"), r"\g<name><user>@<host>"),
    (re.compile(r"^(?!total|done|step)[a-z][a-z0-9-]{2,40}% (?=[a-z./])", re.MULTILINE), "<host>% "),
    (re.compile(rf"^(?=[A-Za-z]){_HOST}(?P<name>:(?:~|/[\w./-]{{0,200}}) [#$] )", re.MULTILINE), r"<host>\g<name>"),
    (re.compile(rf"^{_WHO}(?P<name> (?:at|on) ){_HOST}(?= in ~)", re.MULTILINE), r"<user>\g<name><host>"),
    (re.compile(rf"(?P<name>\")(?=[A-Za-z]){_HOST}(?=\" \d\d:\d\d \d\d-[A-Z][a-z]{{2}}-\d\d)"), r"\g<name><host>"),
    # groups, files and processes
    (re.compile(rf"(?P<name>\b(?:user|User) [\"'`]?)(?!who\b|which\b|that\b|name\b|account\b){_WHO}(?=[\"'`]? is (?:not )?(?:a |an )?(?:in|member|part)\b)"), r"\g<name><user>"),
    (re.compile(rf"(?<![\w/.-])(?!users?\b|who\b|which\b|that\b|it\b|you\b|name\b|account\b|process\b|anyone\b){_WHO}(?P<name> is (?:not |no longer )?(?:a )?member of )"), r"<user>\g<name>"),
    (re.compile(rf"(?P<name>\b(?:usermod -aG|usermod -a -G|gpasswd -a|adduser) (?:[\w,-]{{1,60}} )??){_WHO}(?= (?:render|video)\b|[ \t]*(?:$|&&|;))", re.MULTILINE), r"\g<name><user>"),
    (re.compile(rf"(?P<name>(?:^|[$#%>] )groups ){_WHO}(?=[ \t]*$)", re.MULTILINE), r"\g<name><user>"),
    (re.compile(rf"^{_WHO}(?P<name> : )(?:(?!render\b|video\b)[\w-]{{1,40}} )?(?=(?:[\w-]{{1,40}} ){{0,30}}(?:render|video)\b)", re.MULTILINE), r"<user>\g<name>"),
    (re.compile(rf"(?P<name>(?<![\w-])[bcdlps-](?:[r-][w-][xsStT-]){{3}}[.+@]?[ \t]{{1,8}}\d{{1,6}}[ \t]{{1,8}})(?!nobod\w\b){_WHO}(?=[ \t])"), r"\g<name><user>"),
    (re.compile(r"(?P<name>(?<![\w-])[dl-](?:[r-][w-][xsStT-]){3}[.+@]?[ \t]{1,8}\d{1,6}[ \t]{1,8}[\w.<>-]{1,64}[ \t]{1,8})(?!root\b|video\b|render\b|nogroup\b|users\b|\d)[\w.-]{1,64}(?=[ \t])"), r"\g<name><name>"),
    (re.compile(rf"^{_WHO}(?P<name>[ \t]{{1,12}}\d{{1,8}}[ \t]{{1,4}}\d{{1,5}}\.\d[ \t]{{1,4}}\d{{1,3}}\.\d[ \t]{{1,8}}\d{{1,12}}[ \t])", re.MULTILINE), r"<user>\g<name>"),
    (re.compile(rf"(?P<name>\b(?:SUDO|REMOTE|GITLAB|GITHUB|JUPYTERHUB|SLURM_JOB|PBS_O|RUN_AS)_(?:USER|LOGNAME)=){_WHO}|(?P<mail>/var/(?:spool/)?mail/){_WHO}"), lambda found: (found["name"] or found["mail"]) + "<user>"),
    # home folders of clusters
    (re.compile(r"(?P<name>(?<![\w.>])(?:/[\w.-]{1,40}){0,3}/(?:home\d{1,2}|users|scratch/users|(?:gpfs|lustre|pfs|beegfs|nfs|cephfs)(?:/[\w.-]{1,40})?/(?:home|scratch|work))/)(?!<|[\w.-]{1,64}\.\w{1,5}\b)[\w.-]{1,64}(?P<rest>/)"), r"\g<name><user>\g<rest>"),
    (re.compile(r"(?P<name>(?<![\w.>])/(?:scratch|work|flash|projappl|project)/(?:project_\d{4,12}/)?)(?!<|project_\d|[\w.-]{1,64}\.\w{1,5}\b|(?:src|models?|data|datasets?|cache|tmp|build|vllm|app|code|repo|results?|output|checkpoints?|logs?|hf|huggingface|conda|envs?|venv|lib|bin|projects?|shared|python)\b)[a-z_][\w-]{1,63}(?=/)"), r"\g<name><user>"),
    (re.compile(r"(?P<name>(?<![\w/.])u/)[\w-]{3,20}\b"), r"\g<name><name>"),
)  # fmt: skip
# a user's name where nothing else could stand, and words that are no one's name though they stand there
_USERS = re.compile(
    r"(?:/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})(?P<name>[A-Za-z_][\w-]{2,31})(?=[/\\])|^\(?[\w.() -]{0,40}?(?P<prompt>[a-z_][\w-]{2,31})@[\w.-]{1,63}:[~/]",
    re.MULTILINE,
)
_HOSTS = re.compile(
    r"\b_?_HOSTNAME\"?[=:] ?\"?(?P<journal>[\w.-]{3,63})|^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<syslog>[\w.-]{3,63})(?= kernel: )|@(?P<prompt>[\w-]{3,63})(?=:[~/])|^(?P<nccl>[\w-]{3,63})(?=:\d{2,9}:\d{2,9} \[\d)"
    r"|(?:master[_-]addr|main_process_ip|bin/ssh|\bpdsh@[\w.-]{1,63}:)[ =](?P<launch>[A-Za-z][\w.-]{2,63})",
    re.IGNORECASE | re.MULTILINE,
)
_WORDS = (
    "accelerate admin aiter all apex app appuser axolotl azureuser bitsandbytes build builder cache ci circleci"
    " cloud code comfyui conda container cuda data debian deepspeed default dev developer diffusers docker ec2-user"
    " fedora flash-attention git github gpu group guest hip home host jax jenkins jovyan kernel lib linux llama"
    " local localhost main megatron model models newuser node ollama opc public python pytorch render rocm rocm-user"
    " root runner runneradmin sandbox server service sglang shared src stable-diffusion stable-diffusion-webui steam"
    " system temp tensorflow test tester testuser tmp torch training transformers triton ubuntu user users vagrant"
    " video vllm vscode whisper work worker workspace xformers"
)
_NO_NAMES = frozenset(_WORDS.split())


def known_names(text: str) -> tuple[str, ...]:
    """Return the names of people and machines that a text gives away at a place of theirs, the longest first.

    A machine's name is taken if it has a digit or a hyphen: otherwise it could be any word of the text.

    Args:
        text: what is to be shared, before anything is removed from it.
    """
    users = {name for found in _USERS.finditer(text) for name in (found["name"], found["prompt"]) if name}
    hosts = {name for found in _HOSTS.finditer(text) for name in found.groups() if name and re.search(r"[\d-]", name)}
    names = {name for name in users | hosts if name.lower() not in _NO_NAMES and not name.startswith(("gfx", "rocm"))}
    return tuple(sorted(names, key=lambda name: (-len(name), name)))
