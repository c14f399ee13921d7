"""Settings of trainings: what axolotl, LLaMA-Factory, accelerate, DeepSpeed and the Trainer of transformers are given."""
