"""Wire types, and their translation from and to the types of the engine."""
