"""The statements that the doctor works by, with their evidence and age: variables, driver windows and cautions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocmatrix.doctor import knowledge
from rocmatrix.doctor.environment import rules
from rocmatrix.matrix.resolver.statements import StatementAt, dated


def statements(root: Path) -> Iterator[StatementAt]:
    """Yield every statement of matrix/environment.yaml and matrix/hosts.yaml. Raises RM001 and RM002."""
    for rule in rules.load(root):
        yield dated(rules.ENVIRONMENT_FILE, rule.id, rule.truth, rule.evidence)
    known = knowledge.load(root)
    for window in known.drivers:
        says = f"module {window.module} serves ROCm {window.user_space}"
        yield dated(knowledge.HOSTS_FILE, window.package, says, window.evidence)
    for caution in known.cautions:
        yield dated(knowledge.HOSTS_FILE, caution.id, caution.why, caution.evidence)
