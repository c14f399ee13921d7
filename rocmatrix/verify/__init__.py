"""Comparison of an image's contents with its cell. No GPU; of the image only its Python is run, last.

`image_scan` reads a tree once; `kernel_code`, `packages`, `hygiene`, `size`, `label_check` and `settings` compare one
thing each, purely; `files` compares every path by its bytes; `proof` joins them. Every check fails closed: where
nothing was found to compare, it has failed.
"""
