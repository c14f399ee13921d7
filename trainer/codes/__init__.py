"""The trainer's error codes, one module a topic; `trainer.errors` joins them to its catalog."""
