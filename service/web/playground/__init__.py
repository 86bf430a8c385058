"""The page that scores pictures in a browser: static files."""
