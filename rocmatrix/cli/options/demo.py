"""Options of the task that shows what there is."""

from __future__ import annotations

from dataclasses import dataclass

from rocmatrix.runtime.option import option


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Options of `demo`."""

    out: str = option("the folder to write; an earlier demo there is replaced", default="DEMO")
    gpu: str = option("the card to explain", default="RX 7900 XT")
