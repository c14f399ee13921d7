"""A job of the trainer: its arguments, where it runs, its log; any command in a cell's image; jobs of schedulers."""
