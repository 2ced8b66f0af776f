"""Landmarks: a few objects whose span represents all of them, for inputs (Nyström ridge regression) and for outputs."""

from psilearn.landmarks.features import LandmarkFeatures
from psilearn.landmarks.selection import Landmarks, as_landmarks, pool_size

__all__ = ["Landmarks"]
