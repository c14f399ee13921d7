"""One page on a finished run: no script, nothing fetched, charts as SVG."""
