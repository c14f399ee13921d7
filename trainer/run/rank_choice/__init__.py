"""`--ranks auto`: one rank and all cards are measured for some seconds each, and the faster is taken."""
