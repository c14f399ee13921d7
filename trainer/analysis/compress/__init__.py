"""A trained model made smaller, and what that cost."""
