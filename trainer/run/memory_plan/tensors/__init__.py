"""Tensors without data while planning: operations whose results are known already are not worked out again."""
