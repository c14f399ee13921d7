"""Numbers that stand for no token."""

from __future__ import annotations

IGNORED = -100  # the label of a token that carries no loss, as everywhere in torch
PADDING = -1  # the document number of what fills a row up
