"""Question sets as files: export, import, and the shapes in which others published theirs."""
