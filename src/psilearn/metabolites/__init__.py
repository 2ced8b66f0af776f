"""Metabolite identification: from a tandem mass spectrum to ranked molecules. Needs ``psilearn[chem]``."""

from psilearn.metabolites.identifier import MetaboliteIdentifier
from psilearn.metabolites.queries import Query
from psilearn.metabolites.ranking import Ranking, rank_spectra
from psilearn.metabolites.training import train

__all__ = ["MetaboliteIdentifier", "Query", "Ranking", "rank_spectra", "train"]
