"""What else people write: manifests, workflows of GitHub and GitLab, conda and pyproject files; any file by its form,
and safe corrections."""
