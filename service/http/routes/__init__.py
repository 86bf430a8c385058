"""Endpoints: parse, call, return."""
