"""Cells: what a combination of an architecture, a release and a base image comes to."""
