"""The kinds of words in a card's name, besides the model itself.

A word that no list here has is noise where it cannot be part of a model: boards, shops and machines need no list.
"""

from __future__ import annotations

import re

# Brands and lines. They change nothing about the model, but a Ryzen is no Radeon RX.
LINES = frozenset(["amd", "ati", "radeon", "rx", "pro", "instinct", "ryzen", "ai", "graphics", "firepro", "embedded"])
# What a person writes between a line and a model, or after it, in a sentence or a table.
_SMALL = """
a aib an and apu are as at ax box by card cards cpu das de dell der dgpu die egpu ein el eth evo for from gen gpu gpus
has hbm het hp i ich igpu im in is it la lc le les lp mba mbp mine mit mon msi mxm my new no node not oc oem of old on
one or our own pc pg red ref rog set sff the to tuf un und une usb van vf via vs w we with xfx xl yes
"""
SMALL_WORDS = frozenset(_SMALL.split())
# Lines of boards that are graphics cards alone, with the numbers that belong to them: no Ryzen has one.
BOARDS = re.compile(
    r"\b(?:xfx|sapphire|powercolor|yeston|speedster|(?:merc|qick|swft)(?:\s?(?:105|210|308|309|310|319))?|nitro\+?|hellhound"
    r"|red (?:devil|dragon)|windforce|eagle|mech\s?[23]x|gaming x trio)(?=\s|$)"
)
# Letters behind a number that make it another model, wherever they stand.
STRONG_SUFFIXES = frozenset(["xt", "xtx", "gre"])
# Words of three letters and more that makers put behind a number for another model; shorter ones all count as such.
OTHER_SUFFIXES = frozenset(["gre", "duo", "max", "super", "ultra", "titan", "xfire"])
LAPTOP = frozenset(["mobile", "laptop", "notebook"])
# Numbers between a line and a model: "Ryzen 7", "Ryzen AI 9".
CLASS = re.compile(r"[3579]")

# A place in a machine or all of its cards, which name no kind of card.
PLACES = re.compile(
    r"(?:all|any|both|every|each|first|second|last|best|default|[id]?gpus?|cards?|cuda|hip|rocm|device|integrated|discrete)"
    r"(?:[\s:_#-]{0,3}\d{1,2})?|\d{1,2}(?:\s?[,-]\s?\d{1,2}){0,63}|gpu-[0-9a-f]{12,16}|(?:/dev/dri/)?(?:card|renderd)\d{1,3}"
    r"|(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
)
OTHER_MAKERS = re.compile(
    r"\b(nvidia|geforce|quadro|tesla|titan|(?:rtx|gtx|gt)(?=[\s\d]|$)|[abhl]\d{2,3}[a-z]?|[tpkmv]100|[pm]40|k80|t4"
    r"|gh?200|gb\d{3}|dgx"
    r"|^\s*(?:[2-5]0[5-9]0|1[06][3-8]0)(?:\s?ti|\s?super)?\s*$|intel|arc|gaudi|xeon|apple|adreno|mali"
    r"|snapdragon|tpu|ascend)(?=\b|\d)"
)
# Processors of other makers, and AMD's without graphics, next to a card; another maker's card next to one.
NEIGHBOURS = re.compile(
    r"\b(?:core\s+)?i[3579]\s?-\s?\d{4,5}[a-z]{0,2}\b|\bcore\s+ultra\s+\d\s+\d{3}[a-z]{0,2}\b|\bxeon\s+[\w-]+"
    r"|\b(?:epyc|threadripper)(?:\s+pro)?\s+\w+|\b(?:geforce\s+)?[rg]tx\s?\d{3,4}(?:\s?ti|\s?super)?\b|\barc\s+[ab]\d{3}m?\b"
    r"|\btesla\s+[a-z]\d+\w*"
)
NO_GRAPHICS = re.compile(r"\bryzen\s+(?:[3579]\s+)?(?:pro\s+)?[1-57]\d[05]0(?:x3d|xt|x|f|af)?\b")

# What no release was built for, by LLVM's AMDGPUUsage.rst; the BC-250 by ROCm/rocm-libraries PR #8838; Vega in
# processors by pciutils/pciids (15d8, 15dd) and the Linux kernel.
# Partitions of an accelerator and forms of its board, which name no other model.
PARTITIONS = frozenset(["spx", "dpx", "tpx", "qpx", "cpx", "nps", "oam", "sriov", "passthrough"])
UNSERVED = {
    "gfx1013": re.compile(r"\bbc-?250\b|\bcyan skillfish\b"),
    "gfx902": re.compile(
        r"\braven\b|\bpicasso\b|\bryzen\s+(?:[3579]\s+)?(?:pro\s+)?[23][2-7][05]0(?:ge?|u|h|c)\b"
        r"|\bv1(?!500)[0-9]{3}b\b|\b(?:ryzen\s+embedded\s+|^)r(?:1[1-9]\d\d|2[35]\d\d)g?\b"
    ),
    "gfx904": re.compile(r"\bvega\s?12\b|\bpro\s+vega\s+(?:16|20)\b"),
    "gfx701": re.compile(r"\bhawaii\b|\br9 [23]9[05]x?\b|\bfirepro w[89]100\b"),
    "gfx802": re.compile(r"\btonga\b|\br9 (?:285|380)x?\b|\biceland\b"),
}
# Graphics of processors that go by their number of units: the name does not state the generation.
UNITS_OF_VEGA = re.compile(
    r"\b(?:radeon\s+(?:rx\s+)?)vega\s?(?:[1-9]|10|11)\b|\bvega\s?(?:[1-9]|11)\b|\bvega\s?10\s+(?:graphics|mobile)\b"
)
# Before GCN 3: Radeon HD, R5 to R9 and their mobile forms, FirePro and FireGL, Radeon 520 and 610 (pci.ids 6665).
OLDER = re.compile(
    r"\bradeon\s+hd\b|\bhd\s?\d{4}[a-z]?\b|\bmobility\b|\bfiregl\b|\bfirepro\b(?!\s+s9300)|\brv\d{3}\b"
    r"|\br[2-9]e?(?:\s?-\s?|\s+)m?\d{3}[a-z]{0,2}\b|\bradeon\s+r[1-9]e?\b(?!\s+(?:nano|fury))|\bradeon\s+(?:520|610)\b(?!\s?m\b)"
)
