"""The settings of a training task: YAML sections, their loading, the environment, and what a run takes from them."""
