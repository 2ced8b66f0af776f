"""Metabolite identification: from a tandem mass spectrum to ranked molecules."""

from psilearn_chem.metabolites.identifier import MetaboliteIdentifier
from psilearn_chem.metabolites.queries import Query
from psilearn_chem.metabolites.ranking import Ranking
from psilearn_chem.metabolites.reference_evidence import ReferenceEvidence

__all__ = ["MetaboliteIdentifier", "Query", "Ranking", "ReferenceEvidence"]
