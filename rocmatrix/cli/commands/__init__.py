"""The commands, one module a topic: each has its options, its help and its body, and registers itself by `@command`.

Every start of `./invokew` loads all of them, so that whatever is heavy is imported where it is used.
"""
