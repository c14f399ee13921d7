"""The doctor: what a host, an environment or a file of settings would do to a run, before it runs."""
