"""Measurements of a run: rates, waiting, memory, temperature; as JSON lines first, elsewhere if asked."""
