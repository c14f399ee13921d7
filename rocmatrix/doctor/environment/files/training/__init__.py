"""Settings of trainings: files of axolotl, LLaMA-Factory, accelerate, DeepSpeed and transformers."""
