"""What a run measures of itself: rates, waiting, memory, temperature; as JSON lines first, elsewhere if asked."""
