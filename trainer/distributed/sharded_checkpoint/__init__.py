"""Checkpoints of which each rank writes its part: torch.distributed.checkpoint over safetensors and JSON."""
