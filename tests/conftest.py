"""What all tests rely on."""

import signal

# A program started in the background inherits an ignored SIGINT, and so do its children: the tests that
# interrupt a build or a run would wait for nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)
