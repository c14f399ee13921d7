"""Rows of tokens from text and conversations: tokenizers, chat templates, masks, packing, shards."""
