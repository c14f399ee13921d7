"""The training loop for any learning task: state, optimizers, learning-rate schedule, recovery from out of memory."""
