"""Several processes that train one model: replicas of it, shards of it, or its layers one after the other."""
