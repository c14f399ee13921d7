"""A decoder with its losses: next token by token, and preferences between answers."""
