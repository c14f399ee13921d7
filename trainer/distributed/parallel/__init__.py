"""Several processes that train one model: replicas, shards, a pipeline of layers, or rows of tokens split."""
