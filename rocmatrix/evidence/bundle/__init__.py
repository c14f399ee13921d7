"""One file to send: doctor, versions, the matrix request, records and ends of logs, redacted and bounded."""
