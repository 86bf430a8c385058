"""Other people's wire formats on the same engine, each off unless the settings list it."""
