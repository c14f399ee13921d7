"""YAML text that every parser reads alike."""

from __future__ import annotations

import re
from typing import Any

# Line ends to some readers and none to others, which fold them within single quotes; written as escapes in double ones.
_LINE_ENDS = re.compile(r"[\r\n\x85\u2028\u2029]")


def yaml_text(document: dict[str, Any]) -> str:
    """Return `document` as YAML, its keys in their order."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes every text that is no plain word: readers of YAML disagree on what is a number (1e3, 0o7)."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def quoted(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
        plain = text[:1].isalpha() or text[:1] == "/"
        style = '"' if _LINE_ENDS.search(text) else None if plain else "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, quoted)
    return yaml.dump(document, Dumper=Dumper, sort_keys=False, width=120, allow_unicode=True)
