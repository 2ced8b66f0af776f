"""Optional libraries: the package can be imported without them, and errors name the extra to install."""

import subprocess
import sys

CODE = """
import sys

for library in ("rdkit", "matchms", "pyarrow"):
    sys.modules[library] = None  # an import raises ImportError
import psilearn_chem
from psilearn_chem import Formula, Spectrum, spectrum_kernel
from psilearn_chem.molecules import CandidateLibrary
from psilearn_chem.spectra import read_spectra

print(spectrum_kernel()([Spectrum([50.0], [1.0], precursor_mz=80.0)])[0, 0])
try:
    Formula.parse("H2O")
except ImportError as error:
    print(error)
"""


def test_chem_works_without_optional_libraries_where_it_can():
    completed = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines() == ["1.0", "Molecules need RDKit: pip install 'psilearn[chem]'."]
