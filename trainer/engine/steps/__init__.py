"""How a step is taken and why: compiled, as a CUDA graph, several at once; each tried against eager first."""
