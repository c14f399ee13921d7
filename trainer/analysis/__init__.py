"""What is done with a finished run: forecasts, a report, smaller models, comparison of two runs, replay of a NaN."""
