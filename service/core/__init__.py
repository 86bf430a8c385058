"""What all layers use: errors, `Retry-After`, lanes, fields, expressions, text files."""
