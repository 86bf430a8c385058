"""The contract as a machine reads it: schemathesis against the service around fake models."""
