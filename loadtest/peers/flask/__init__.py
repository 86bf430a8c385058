"""Flask behind gunicorn around our models: the pattern of the trainers' reward servers."""
