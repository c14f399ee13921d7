"""Adapters of frozen models: LoRA over dense or 4-bit weights, in peft's file format."""
