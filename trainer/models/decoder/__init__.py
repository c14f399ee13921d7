"""One causal decoder in plain torch for Llama, Mistral, Qwen, Gemma and GPT-2."""
