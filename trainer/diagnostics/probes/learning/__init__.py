"""Probes of learning itself: gradients of single operators, and a loss that falls as on the CPU."""
