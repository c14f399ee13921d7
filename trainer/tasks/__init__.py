"""What is learned: the interface of a learning task, and the tasks that implement it."""
