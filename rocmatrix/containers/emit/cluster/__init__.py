"""Scheduler requests of a site, and the script lines that inspect the node of a job."""
