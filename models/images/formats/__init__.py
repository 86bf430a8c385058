"""The formats of picture files: their headers and their pixels."""
