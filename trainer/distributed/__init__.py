"""Training on several ranks: launch by torchrun, collectives, a batch in pieces whose gradients add up."""
