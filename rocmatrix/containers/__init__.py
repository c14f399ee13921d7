"""Containment of a job: settings with their reasons, least privilege, one run spec, the engine's edge and its locks."""
