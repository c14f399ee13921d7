"""Scheduler requests of a site, and the lines of a script that inspect the node of a job."""
