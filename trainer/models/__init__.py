"""Networks; each a plain `torch.nn.Module` that needs nothing else of the trainer."""
