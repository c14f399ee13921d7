"""From a file of bars to arrays for training; numpy only."""
