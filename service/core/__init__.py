"""What all layers use: errors, lanes, fields, expressions, text files."""
