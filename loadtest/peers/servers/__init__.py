"""What runs in each peer's environment: its server around our models, or its checkpoint, and its lock."""
