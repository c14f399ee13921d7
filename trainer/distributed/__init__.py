"""Training on several ranks: launch, collectives, gradient accumulation."""
