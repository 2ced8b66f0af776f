"""Decoding of strings: beam search over all strings of an alphabet."""

from psilearn.decoding.strings.string_beam import StringBeam

__all__ = ["StringBeam"]
