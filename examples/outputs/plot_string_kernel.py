"""
A kernel of one's own: predict strings
======================================

A kernel is a class with two methods. This example writes one for strings, by the letter n-grams that two strings
share, and uses it for inputs and outputs: words are restored that were typed with the hands one key too far to the
right, with further typing errors. The outputs are strings, and the test words do not occur in the training pairs.

Guide: :doc:`/extend`.
"""

import re
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from sklearn import datasets

from psilearn import IOKRCV
from psilearn.kernels import Kernel
from psilearn.metrics import Mean, top_k_accuracy

plt.style.use("tableau-colorblind10")

# %%
# The kernel
# ----------
#
# ``_block(A, B, compute)`` returns the kernel between two collections and ``_diag(A)`` its values k(a, a). A slower
# alternative needs no class: any function k(a, b) can be passed as a kernel.


class NGrams(Kernel):
    """The number of common letter n-grams of two strings, counted with multiplicity, for n up to ``length``."""

    def __init__(self, length=2):
        self.length = length

    def _counts(self, strings, columns):
        """Return the counts of n-grams as a sparse matrix; ``columns`` numbers the n-grams and grows."""
        rows = [
            Counter(f"^{s}$"[i : i + n] for n in range(1, self.length + 1) for i in range(len(s) + 3 - n))
            for s in strings
        ]
        entries = [
            (i, columns.setdefault(gram, len(columns)), c) for i, row in enumerate(rows) for gram, c in row.items()
        ]
        i, j, values = np.array(entries).T
        return csr_array((values.astype(float), (i, j)), shape=(len(rows), 1 + max(columns.values())))

    def _block(self, A, B, compute):
        columns = {}
        a, b = self._counts(A, columns), self._counts(B, columns)
        return (a[:, : b.shape[1]] @ b[:, : a.shape[1]].T).toarray()

    def _diag(self, A):
        return self._counts(A, {}).power(2).sum(axis=1)


print(NGrams(2)(["wine", "vine"], ["wine", "iris"]))

# %%
# The data: words of scikit-learn's descriptions of datasets
# ----------------------------------------------------------

rng = np.random.default_rng(0)
loaders = (datasets.load_wine, datasets.load_breast_cancer, datasets.load_digits, datasets.load_iris)
loaders += (datasets.load_diabetes, datasets.load_linnerud)
words = sorted({word for load in loaders for word in re.findall(r"[a-z]{5,}", load().DESCR.lower())})
words = [str(word) for word in rng.permutation(words)]


SHIFTED = str.maketrans("qwertyuiopasdfghjklzxcvbnm", "wertyuiop[sdfghjkl;xcvbnm,")


def mistype(word):
    """Type a word one key too far to the right; every eighth letter is replaced at random."""
    letters = [rng.choice(list("abcdefghijklmnopqrstuvwxyz")) if rng.random() < 1 / 8 else letter for letter in word]
    return "".join(letters).translate(SHIFTED)


inputs = [mistype(word) for word in words]
n = 300
print(f"{len(words)} words, {n} of them for training:", list(zip(inputs, words, strict=True))[:4])

# %%
# Learn, and choose among all words
# ---------------------------------
#
# The parameters are those with the smallest squared error of held-out training words. The competitor learns nothing: it
# returns the word whose own n-grams are nearest to those of the input.

output_kernel = NGrams(2).normalized()
search = IOKRCV(
    [NGrams(length).normalized() for length in (1, 2, 3)],
    output_kernel,
    alphas=[1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
    cv=5,
).fit(inputs[:n], words[:n])
print(search.best_params_)
positions = search.truth_positions(inputs[n:], words[n:], candidates=words)
similarity = output_kernel(inputs[n:], words)
truth = similarity[np.arange(len(words) - n), np.arange(n, len(words))]
nearest_positions = np.sum(similarity > truth[:, None], axis=1)
for given, word, restored in list(
    zip(inputs[n:], words[n:], search.predict(inputs[n:], candidates=words), strict=True)
)[:6]:
    print(f"{given} → {restored}" + ("" if restored == word else f" (instead of {word})"))

# %%
# The regression learns which n-grams become which, and it applies this to words that it has not seen.

ks = np.arange(1, 11)
learned = [top_k_accuracy(positions, k) for k in ks]
unlearned = [Mean(nearest_positions < k) for k in ks]
print(f"first of {len(words)}: learned {learned[0]}, without learning {unlearned[0]}")
print("difference:", Mean(learned[0].values - unlearned[0].values))

shown = sorted(words, key=len)[:: len(words) // 12][:12]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for color, marker, values, name in (("C0", "o", learned, "IOKR"), ("C1", "s", unlearned, "nearest word, no learning")):
    left.errorbar(ks, values, [v.standard_error for v in values], color=color, marker=marker, capsize=3, label=name)
left.set(xlabel="k", ylabel="true word among the first k (± s.e.)", title="Words without training pairs")
left.legend(loc="center right")
image = right.imshow(output_kernel.gram(shown), cmap="Blues", vmin=0, vmax=1)
right.set_xticks(range(len(shown)), shown, rotation=60, ha="right")
right.set_yticks(range(len(shown)), shown)
right.set_title("The kernel of some words")
figure.colorbar(image, ax=right, shrink=0.8)
plt.show()
