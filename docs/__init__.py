"""The pages, and the modules that render the reference pages."""
