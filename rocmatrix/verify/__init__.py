"""What an image really holds, compared with what its cell claims: no GPU, nothing of the image is run.

`contents` reads a tree once; `kernel_code`, `packages`, `hygiene`, `size` and `claim` compare one thing each, purely;
`proof` joins them. Every check fails closed: where nothing was found to compare, it has failed.
"""
