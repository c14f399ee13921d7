"""What a site asks of its jobs, and what a job finds out on the node that runs it."""
