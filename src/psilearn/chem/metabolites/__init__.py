"""Metabolite identification: from a tandem mass spectrum to ranked molecules. Needs ``psilearn[chem]``."""

from psilearn.chem.metabolites.identifier import MetaboliteIdentifier
from psilearn.chem.metabolites.queries import Query
from psilearn.chem.metabolites.rank import Ranking, rank_spectra
from psilearn.chem.metabolites.reference_evidence import ReferenceEvidence
from psilearn.chem.metabolites.training import train

__all__ = ["MetaboliteIdentifier", "Query", "Ranking", "ReferenceEvidence", "rank_spectra", "train"]
