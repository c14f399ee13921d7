"""Container engines and images at their edge."""
