"""What else people write: Kubernetes manifests, GitHub workflows, conda and pyproject files; any file by its form, and
safe corrections."""
