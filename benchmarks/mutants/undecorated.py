"""Rewrite decorated functions so that mutmut mutates them, too.

mutmut leaves decorated functions alone, and properties decide much here. In the mutated copy `@property def f` is
written as `def f` followed by `f = property(f)`, which means the same; so are the recorder's `harmless` and
`torch.no_grad()`. Caches are left out: a value kept from before the fork would hide a mutant.
"""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

CACHES = m.Name("cache") | m.Call(func=m.Name("lru_cache"))
ASSIGNED = (
    m.Name("property")
    | m.Name("cached_property")
    | m.Name("contextmanager")
    | m.Name("harmless")
    | m.Attribute(attr=m.Name("contextmanager"))
    | m.Call(func=m.Attribute(value=m.Name("torch"), attr=m.Name("no_grad")))
)


class _Undecorate(cst.CSTTransformer):
    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef):  # type: ignore[no-untyped-def]  # noqa: N802
        found = [decorator.decorator for decorator in updated_node.decorators]
        if len(found) != 1 or not m.matches(found[0], CACHES | ASSIGNED):
            return updated_node
        if m.matches(found[0], CACHES):
            return updated_node.with_changes(decorators=[])
        name = updated_node.name
        target = cst.AssignTarget(cst.Name(name.value))
        again = cst.Assign([target], cst.Call(found[0], [cst.Arg(cst.Name(name.value))]))
        return cst.FlattenSentinel([updated_node.with_changes(decorators=[]), cst.SimpleStatementLine([again])])


def undecorated(code: str) -> str:
    """Return the same module with properties, cached functions and context managers made by assignment."""
    return cst.parse_module(code).visit(_Undecorate()).code
