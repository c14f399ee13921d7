"""Ways to take a step, and how one is selected."""
