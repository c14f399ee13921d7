"""The trainer's error codes, one module a topic; `trainer.runtime.errors` joins them to its catalog."""
