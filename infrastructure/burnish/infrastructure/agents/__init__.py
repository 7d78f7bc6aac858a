"""Agents with a command line of their own, asked like chat models."""
