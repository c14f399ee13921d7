"""Checks of a host under stable codes: driver, cards, limits, state; each finding has a reason, a source and a fix."""
