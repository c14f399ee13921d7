"""Health of a card before and after a run: error counters, throttling, energy."""
