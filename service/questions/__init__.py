"""Question sets: written by an LLM once per prompt, checked, stored, and pinned by an id."""
