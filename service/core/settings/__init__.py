"""All settings: one frozen tree, read once from a TOML profile and the environment."""

from models.core.contract import Temporary


class SettingsError(Exception):
    """The configuration is wrong; the message is one line that names the setting."""


class NotYet(SettingsError, Temporary):
    """What a setting names is not there yet, or somebody else has it; it may be there later."""
