"""Wire types, and what becomes of them."""
