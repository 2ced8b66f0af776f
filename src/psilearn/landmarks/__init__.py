"""Landmarks: a few objects whose span represents all of them, for inputs (Nyström ridge regression) and for outputs."""

from psilearn.landmarks.selection import Landmarks

__all__ = ["Landmarks"]
