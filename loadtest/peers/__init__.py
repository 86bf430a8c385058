"""What users would run in place of the service, around the same models, and the service beside it."""
