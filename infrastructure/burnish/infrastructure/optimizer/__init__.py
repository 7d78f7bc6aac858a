"""The optimizer: reads rollouts, writes edits, with a language model."""
