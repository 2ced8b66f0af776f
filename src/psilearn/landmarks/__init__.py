"""Landmarks: a few objects whose span stands for all, on the input side (Nyström ridge) and on the output side."""

from psilearn.landmarks.features import LandmarkFeatures
from psilearn.landmarks.selection import Landmarks, as_landmarks, pool_size

__all__ = ["LandmarkFeatures", "Landmarks", "as_landmarks", "pool_size"]
