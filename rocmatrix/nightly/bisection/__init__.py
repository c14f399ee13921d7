"""Bisection of versions: which step broke a probe on a card, found with as few runs as possible."""
