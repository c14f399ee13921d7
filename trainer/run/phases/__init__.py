"""The phases of one run, in order: prepare, assemble, finish. `trainer.run.train` calls them."""
