"""The engine on a GPU: the same rules, the same problems, the same laws."""
