"""Where burnish meets people and hosts: the app, the console, the settings."""

from burnish.presentation.app import App, open_app

__all__ = ["App", "open_app"]
