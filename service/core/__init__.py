"""What all layers use: errors, lanes, fields, text files."""
