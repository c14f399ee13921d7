"""Use of a finished run: forecasts, reports, smaller models, comparison, replay."""
