"""Saved models in files without pickle, and what packages need to save classes and arrays of their own."""

from psilearn._utils.array_files import ArrayFile, FileFormat, pack_texts, unpack_texts
from psilearn.io.codecs import Codec
from psilearn.io.encoding import register, register_class
from psilearn.io.saved_models import check_model_path, load_model, load_with_notes, read_notes, save_model

__all__ = [
    "ArrayFile",
    "Codec",
    "FileFormat",
    "check_model_path",
    "load_model",
    "load_with_notes",
    "pack_texts",
    "read_notes",
    "register",
    "register_class",
    "save_model",
    "unpack_texts",
]
