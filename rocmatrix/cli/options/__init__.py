"""The options of each task, a dataclass a task: written here once, read by the task and by the command it calls."""
