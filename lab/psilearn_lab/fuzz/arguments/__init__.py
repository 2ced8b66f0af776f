"""Hostile arguments: each argument of each public call is replaced by wrong values, one at a time."""
