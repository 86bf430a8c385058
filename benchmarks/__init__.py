"""Former names of commands that measure: `loadtest/` has them."""
