"""All settings: one frozen tree, read once from a TOML profile and the environment."""

from models.core.contract import Temporary


class SettingsError(Exception):
    """The configuration is wrong; the message is one line that names the setting."""


class NotYet(SettingsError, Temporary):
    """Something that a setting names is missing or in use, but may become available later."""
