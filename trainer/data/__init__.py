"""Reading of data files into arrays for training; numpy only."""
