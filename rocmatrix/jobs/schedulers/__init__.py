"""Schedulers that a job can be sent to, one module each: its options, its destination, and the job made for it.

A module here registers itself by its `SCHEDULER`; `submit` and its help read the register. What is written for a
scheduler stands in `rocmatrix.containers.emit`. Options are declared without heavy imports, for every start of
`./invokew` reads them.
"""
