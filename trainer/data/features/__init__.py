"""The features of bars and the files that keep them."""
