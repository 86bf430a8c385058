"""GenEval's objects: tasks, detection and checks."""
