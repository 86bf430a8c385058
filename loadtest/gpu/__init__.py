"""One command on a GPU: what the models and the service do there, and what that costs."""
