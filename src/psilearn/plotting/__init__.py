"""Figures of searches, spectra, learning curves and completed images.

Matplotlib is the extra ``psilearn[plot]``. Each function draws on given or new axes and returns the axes or the figure.
Nothing is shown or saved: ``ax.figure.savefig("picture.png")`` saves it.
"""

from psilearn.plotting.curve_plots import plot_convergence, plot_curves, plot_spectrum
from psilearn.plotting.image_plots import plot_completions, select_example_per_class
from psilearn.plotting.search_plots import plot_components, plot_validation

__all__ = [
    "plot_completions",
    "plot_components",
    "plot_convergence",
    "plot_curves",
    "plot_spectrum",
    "plot_validation",
    "select_example_per_class",
]
