"""The sections of a configuration, one frozen dataclass each: by kind of data, of network, and of the run."""
