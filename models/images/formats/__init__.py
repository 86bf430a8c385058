"""The formats that pictures come in: what a file says of itself, and its pixels."""
