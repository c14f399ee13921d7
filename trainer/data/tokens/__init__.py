"""From text and conversations to rows of tokens: tokenizers, chat templates, masks, packing, shards."""
