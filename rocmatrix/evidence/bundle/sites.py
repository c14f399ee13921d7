# ruff: noqa: E501 (one form a line)
"""Forms of what names a site, its people and their data in a bundle: batch systems, logins, registries, clusters, paths.

A diagnosis that is shared is read by its sender line by line; a bundle is sent whole, so that more is taken out of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_OWN_FOLDERS = r"(?:rocmatrix|trainer|matrix|images|compose|templates|tests|docs|scripts|benchmarks|requirements|recipes|records|logs)/"
_DATA = r"(?:csv|tsv|parquet|feather|arrow|jsonl|xlsx?|ods|h5|hdf5|np[yz]|txt|zip|gz|xz|bz2|zst|pkl|db|sqlite)"
_PUBLIC_IMAGES = r"(?:rocm|amd|library|pytorch|ggml-org|huggingface|vllm|ollama|open-webui|nvidia)/"
_PUBLIC_OWNERS = r"(?:ROCm|amd|AMD-AGI|pytorch|triton-lang|huggingface|vllm-project|ggml-org|Dao-AILab|bitsandbytes-foundation|Comfy-Org)"
# of countries; those that end names of files or attributes of programs (py, rs, sh, in, io) name no host alone
_COUNTRIES = r"(?:de|uk|fr|nl|ch|se|fi|dk|cz|jp|cn|kr|au|ca|br|eu|ru|tw|hk|sg|il|be|pt|gr|hu|ie|tr|za|mx|nz|edu\.[a-z]{2}|ac\.[a-z]{2})"
_DN = r"(?:uid|cn|ou|dc|o|c|l|st) ?= ?[^,=\s\"']{1,100}(?: [^,=\s\"']{1,100}){0,5}"

BEFORE_PATHS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # batch systems and MPI's launchers
    (re.compile(r"(?P<name>\b(?:PBS|LSB|LSF|SGE|COBALT|FLUX|OAR)_[A-Z_]{0,40}=[\"']?)[^\s;\"']{1,1000}(?: [a-z][\w.-]{0,60}\d[\w.-]{0,60}(?=\s|$)){0,400}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>(?<!\S)(?:-H|--?hosts?|--nodelist|--nodefile|-w)[ =])(?=[\w.,:\[\]-]{0,400}[a-z])[\w.-]{1,63}[\w.,:\[\]-]{0,1000}"), r"\g<name><host>"),
    (re.compile(r"(?P<name>\bslurm(?:step)?d-)[\w.-]{1,253}(?=:)"), r"\g<name><host>"),
    (re.compile(r"(?P<name>\b(?:resolve|unknown|reach|find|lookup) host(?:name)?:? [\"']?)[\w.-]{1,253}", re.IGNORECASE), r"\g<name><host>"),
    (re.compile(rf"(?<![\w.@/-])(?:[\w-]{{1,63}}\.){{2,8}}{_COUNTRIES}(?![\w-]|\.\w|\()"), "<host>"),
    # people
    (re.compile(r"(?P<name>\b(?:Author|Committer|Maintainer|[A-Z][a-z]{1,12}(?:-[a-z]{2,12}){0,2}-by)\s{0,3}:\s{0,3})[^<\n]{1,100}(?=<)"), r"\g<name><name> "),
    (re.compile(r"(?P<name>\bsudo(?:\[\d{1,9}\])?:\s{1,8})[\w.-]{1,64}(?= : )"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\buser )[\w.-]{1,64}(?=\(uid=)"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\b(?:Accepted|Failed) [\w/-]{1,40} for |\bInvalid user )(?:invalid user )?[\w.-]{1,64}(?= from\b)"), r"\g<name><name>"),
    (re.compile(rf"\b(?=[^\n]{{0,200}}\b(?:uid|cn|ou|dc) ?=){_DN}(?:,\s?{_DN}){{1,20}}", re.IGNORECASE), "<name>"),
    (re.compile(r"\b[\w.-]{1,64}/[\w.-]{1,64}@(?=[A-Z][\w.-]{1,253}\b)(?!sha256)"), "<name>@"),
    (re.compile(r"^\([\w.-]{1,64}\)(?= [\w.<>-]{1,64}@| [^\n]{0,200}[$#] )", re.MULTILINE), "(<name>)"),
    # keys
    (re.compile(r"\bSHA256:[A-Za-z0-9+/]{43}=?"), "<id>"),
    (re.compile(r"\bdapi[0-9a-f]{32}\b|(?<!\d)\d{8,10}:AA[\w-]{30,40}(?![\w-])"), "<token>"),
    (re.compile(r"(?P<name>\bprivate_key_id[\"']?\s{0,3}[:=]\s{0,3}[\"']?)[0-9a-f]{8,64}"), r"\g<name><secret>"),
    (re.compile(r"(?P<name>(?<![\w-])(?:psk|wpa_passphrase)\s{0,3}[:=]\s{0,3}[\"']?)[^\s\"']{4,200}", re.IGNORECASE), r"\g<name><secret>"),
    (re.compile(r"(?P<name>\bECID[ :=]{1,3})0x[0-9a-f]{4,32}", re.IGNORECASE), r"\g<name><id>"),
    # clusters
    (re.compile(r"(?P<name>--namespace[= ][\"']?)(?!<)[\w.-]{1,253}"), r"\g<name><name>"),
    (re.compile(r"(?P<name>\b(?:namespace|pod|service ?account|persistentvolumeclaim|configmap)s? \")[\w.-]{1,253}(?=\")", re.IGNORECASE), r"\g<name><name>"),
    (re.compile(r"(?P<name>(?<![\w./-])(?:pod|pvc|statefulset|deployment)s?/)[a-z0-9][\w.-]{0,253}"), r"\g<name><name>"),
    # registries, repositories, images of a person
    (re.compile(rf"(?P<name>\bgithub\.com[:/])(?!{_PUBLIC_OWNERS}/)[\w.-]{{1,64}}/[\w.-]{{1,100}}\.git\b", re.IGNORECASE), r"\g<name><path>"),
    (re.compile(r"(?<![\w./-])(?:[\w-]{1,63}\.){0,8}[\w-]{1,63}:\d{2,5}/(?!/)[\w./:@-]{1,400}"), "<host>/<path>"),
    (re.compile(rf"(?P<name>\b(?:docker|ghcr|quay|nvcr|gcr)\.io/)(?!{_PUBLIC_IMAGES})[\w./:@-]{{1,400}}"), r"\g<name><path>"),
    (re.compile(r"(?P<name>\brepository [\"'])(?!<)[^\"'\n]{1,400}"), r"\g<name><path>"),
    # paths without a beginning, or with blanks
    (re.compile(r"/(?:mnt/[a-z]/)?Users/[^/\n\"'<>]{1,64}/[^\s\"'<>]{0,1000}"), "<path>"),
    (re.compile(rf"(?<![\w./~<>:-])(?:\.{{1,2}}/){{0,8}}(?!{_OWN_FOLDERS})(?:[\w.@+=-]{{1,100}}/){{1,20}}[\w.@+=-]{{1,100}}\.{_DATA}\b"), "<path>"),
)  # fmt: skip
AFTER_PATHS = (
    (re.compile(r"<path>(?: [A-Z][\w.&-]{0,40}){1,4}/[\w./-]{1,400}"), "<path>"),  # a folder's name with blanks
    (re.compile(r"(?<![\w./-])(?=[\w.]{0,63}[-\d])[A-Za-z][\w.-]{0,63}(?=:(?:<path>|<home>)(?:\s|$))", re.MULTILINE), "<host>"),
    (re.compile(r"(?<![\w./-])[A-Za-z][\w.-]{0,63}(?=:(?:<path>|<home>)[^\n]{0,400}\b(?:nfs4?|lustre|cifs|beegfs|gpfs|ceph)\b)"), "<host>"),
)  # fmt: skip
