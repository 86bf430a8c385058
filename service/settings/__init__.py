"""All settings: one frozen tree, read once from a TOML profile and the environment."""


class SettingsError(Exception):
    """The configuration is wrong; the message is one line that names the setting."""
