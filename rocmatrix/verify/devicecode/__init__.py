"""Device code in files, read from their bytes: no GPU, no ROCm, nothing executed.

`target` names what code is for; `elf`, `bundle`, `kpack` and `aotriton` read one format each; `names`
reads the target from a file's name; `inspection` picks among them for one file, and `inventory` sums up
a tree. Damage is a `DamagedError` with the reason; a reader never guesses an architecture.
"""
