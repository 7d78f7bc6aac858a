"""The training method as pure data and functions: no I/O, no clock, no randomness of its own."""
