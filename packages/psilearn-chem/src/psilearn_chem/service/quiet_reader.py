"""Imported by the process that reads files before its other packages, so that their warnings do not enter the log."""

import warnings

warnings.simplefilter("ignore")
