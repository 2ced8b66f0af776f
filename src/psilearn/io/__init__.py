"""Saved models: folders of plain files, without pickle."""

from psilearn.io.saved_models import load_model, read_notes, save_model

__all__ = ["load_model", "read_notes", "save_model"]
