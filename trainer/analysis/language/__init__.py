"""Use of a trained language model: measure, generate, merge and export it."""
