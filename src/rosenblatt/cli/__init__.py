"""The command line: one function a sub-command, each a call into the library."""
