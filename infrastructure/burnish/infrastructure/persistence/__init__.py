"""Stores: in memory and in SQL databases."""
