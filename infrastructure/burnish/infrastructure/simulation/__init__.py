"""Simulated models for demos, tests and benchmarks; never mistaken for real ones."""
