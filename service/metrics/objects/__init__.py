"""Objects in pictures: which ones there should be, which ones count as found, and what is checked of them."""
