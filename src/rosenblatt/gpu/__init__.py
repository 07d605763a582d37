"""The engine on a GPU: the same rules and problems, learned row by row as on the CPU. See docs/howto/gpu.md."""
