"""Models in local folders in Hugging Face layout: configuration, weights in shards, tokenizer files."""
