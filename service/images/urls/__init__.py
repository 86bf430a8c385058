"""Pictures by URL: which addresses are fetched from, and how."""
