"""Containers: settings, least privilege, the run spec, and the engine."""
