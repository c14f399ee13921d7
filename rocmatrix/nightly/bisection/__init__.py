"""Bisection of versions: the step that broke a probe on a card, found with as few runs as possible."""
