"""Metabolite identification: from a tandem mass spectrum to ranked molecules. Needs ``psilearn[chem]``."""

from psilearn_chem.metabolites.identifier import MetaboliteIdentifier
from psilearn_chem.metabolites.queries import Query
from psilearn_chem.metabolites.rank import Ranking, rank_spectra
from psilearn_chem.metabolites.reference_evidence import ReferenceEvidence
from psilearn_chem.metabolites.training import train

__all__ = ["MetaboliteIdentifier", "Query", "Ranking", "ReferenceEvidence", "rank_spectra", "train"]
