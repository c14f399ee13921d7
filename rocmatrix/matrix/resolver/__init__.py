"""From a request to a cell and its explanation, or a refusal."""
