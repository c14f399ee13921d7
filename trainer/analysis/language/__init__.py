"""What is done with a trained language model: measure, generate, merge and export it."""
