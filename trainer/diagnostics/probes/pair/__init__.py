"""Probes of two cards."""
