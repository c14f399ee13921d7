"""The parts of the task of language models: tokenizer and template, network, files of the run."""
