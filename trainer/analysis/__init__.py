"""What is done with a finished run: forecasts, reports, smaller models, comparison, replay."""
