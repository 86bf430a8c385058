"""HTTP: the app, its routes and wire types, keys, the server and the dialects."""
