"""Resolution of a request to a cell with its explanation, or to a refusal."""
