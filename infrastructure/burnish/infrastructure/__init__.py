"""The ports made real: persistence, models, optimizer and tasks."""
