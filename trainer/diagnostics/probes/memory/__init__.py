"""The probe of a card's own memory: patterns over nearly all that is free, and its bandwidth."""
