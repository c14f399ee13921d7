"""What a plan is made of: the options of the command, or a recipe of `train` with them."""
