"""What a card reports of its own health before and after a run: error counters, throttling, energy."""
