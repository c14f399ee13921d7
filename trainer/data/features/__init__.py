"""Features of bars, and Arrow files of them under a hash of everything that decides them."""
