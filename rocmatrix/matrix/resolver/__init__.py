"""A request and the cards at hand resolved to a cell with its explanation, or to a refusal; the grid of all pairs."""
