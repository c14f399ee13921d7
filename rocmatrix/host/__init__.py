"""Hardware of the host, read below /sys and /dev: processors, cards, driver, device nodes, links and NUMA nodes."""
