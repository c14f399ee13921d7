"""Evidence on cells: a record for every build, proof, smoke, training and bench run, and the level it supports.

A record is never edited. A level is never typed in: it is computed from the records of real images on real cards.
"""
