"""Question sets as files: export, import, and the formats of published sets."""
