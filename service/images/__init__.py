"""Images: loaded within the limits, once per request."""
