"""Probes of one card."""
