"""Benchmarks of several cards: how training scales from one to two, and copies between all pairs.

On a CPU two gloo ranks stand in for cards; the verdicts name them so, and no figure of theirs is of a card.
"""
