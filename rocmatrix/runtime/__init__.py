"""What every room uses: errors, console output, paths, options as fields, templates, the trainer's own lists."""
