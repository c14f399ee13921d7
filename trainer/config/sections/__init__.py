"""The sections of a configuration, one frozen dataclass each; code that needs one takes that one."""
