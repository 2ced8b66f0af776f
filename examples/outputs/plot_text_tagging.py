"""
Tag documents: texts in, sets of tags out
=========================================

Documents are tagged with several of twelve topics. The texts pass through scikit-learn's ``TfidfVectorizer``, the tags
through ``MultiLabelBinarizer``, and :class:`~psilearn.OELCV` is the last step of an ordinary pipeline. The output
kernel is :class:`~psilearn.kernels.Dice`, whose squared distance is :math:`2 - 2 F_1`. A strong and simple competitor
is included: one logistic regression per tag with a threshold that is tuned for :math:`F_1`.

Guide: :doc:`/label_sets`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

from psilearn import OELCV
from psilearn.kernels import Dice, Linear
from psilearn.metrics import Mean, f1_score

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)

# %%
# Generate documents
# ------------------
#
# The topics of a document form one of 40 combinations, so tags depend on each other. Each topic has words of its own,
# but half of the words of a document belong to no topic, and a fifth are drawn from any topic.

WORDS = {
    "art": "painting gallery canvas museum sculpture portrait brush exhibition",
    "biology": "cell species protein gene organism membrane enzyme habitat",
    "chemistry": "acid molecule reaction solvent catalyst bond compound polymer",
    "economics": "market inflation trade price bank wages export demand",
    "film": "director scene camera actor screenplay premiere cinema sequel",
    "history": "empire century war archive dynasty revolt treaty colony",
    "law": "court judge statute contract appeal verdict clause lawyer",
    "medicine": "patient therapy diagnosis vaccine surgery symptom dose clinic",
    "music": "melody orchestra chord concert rhythm violin choir album",
    "physics": "energy particle quantum field momentum laser neutron gravity",
    "politics": "election parliament vote minister coalition reform senate campaign",
    "sport": "match goal coach league stadium sprint medal referee",
}
WORDS = {topic: words.split() for topic, words in WORDS.items()}
COMMON = "report week people large result begin place early group number open public show small time start"
COMBINATIONS = [rng.choice(list(WORDS), rng.choice([1, 2, 3, 4]), replace=False) for _ in range(40)]
POPULARITY = rng.dirichlet(np.ones(40))


def write_document(tags):
    """Return 25 words: some of the topics of the document, some of any topic, and common words."""
    words = []
    for source in rng.choice(["tags", "any", "common"], 25, p=[0.3, 0.2, 0.5]):
        topic = rng.choice(tags if source == "tags" else list(WORDS))
        words.append(rng.choice(COMMON.split() if source == "common" else WORDS[topic]))
    return " ".join(words)


tags = [COMBINATIONS[i] for i in rng.choice(40, 1100, p=POPULARITY)]
texts = [write_document(topics) for topics in tags]
binarizer = MultiLabelBinarizer().fit([list(WORDS)])
Y = binarizer.transform(tags)
train, test = slice(300), slice(300, None)
print(f"{texts[0]} → {', '.join(tags[0])}")

# %%
# A pipeline from texts to tags
# -----------------------------
#
# The search chooses λ, p and c by the :math:`F_1` of decoded predictions. The linear kernel of tf-idf rows is the
# cosine of two documents.


def make_tagger():
    """Return a pipeline from texts to 0/1 rows of tags."""
    search = OELCV(
        Linear(),
        Dice(),
        alphas=[1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
        n_components=[4, 8, 12, 18, 26],
        supervisions=[0.0, 0.5, 1.0],
        scoring="f1",
        cv=3,
    )
    return make_pipeline(TfidfVectorizer(), search)


def predict_by_logistic_regressions(n):
    """Learn one logistic regression per tag from n documents, and a threshold by cross-validation; predict the test."""
    model = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LogisticRegression(C=10.0)))
    held_out = cross_val_predict(model, texts[:n], Y[:n], method="predict_proba")
    threshold = max(np.linspace(0.05, 0.5, 46), key=lambda value: float(f1_score(Y[:n], held_out >= value)))
    return model.fit(texts[:n], Y[:n]).predict_proba(texts[test]) >= threshold


tagger = make_tagger().fit(texts[train], Y[train])
predicted = tagger.predict(texts[test])
scores = {"OEL": f1_score(Y[test], predicted), "LR": f1_score(Y[test], predict_by_logistic_regressions(300))}
print({name: str(score) for name, score in scores.items()})
print("OEL − LR:", Mean(scores["OEL"].values - scores["LR"].values))
print("chosen:", {name: tagger[-1].best_params_[name] for name in ("alpha", "n_components", "supervision")})
for text, row in list(zip(texts[test], predicted, strict=True))[:3]:
    print(f"{text[:60]} … → {', '.join(binarizer.classes_[row == 1])}")

# %%
# Where does the gain come from?
# ------------------------------
#
# OEL predicts one of the sets that it has seen, so it profits from knowing which tags occur together. Its advantage
# over one classifier per tag is largest with the fewest documents. The documents were generated so that tags depend on
# each other; the example on label sets that never occurred has labels that do not.

sizes = [75, 150, 300]
curves = {"OEL": [], "LR": []}
for n in sizes[:-1]:
    curves["OEL"].append(f1_score(Y[test], make_tagger().fit(texts[:n], Y[:n]).predict(texts[test])))
    curves["LR"].append(f1_score(Y[test], predict_by_logistic_regressions(n)))
for name, score in scores.items():
    curves[name].append(score)

together = np.corrcoef(Y[train].T)
np.fill_diagonal(together, 0)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for color, marker, (name, values) in zip(("C0", "C1"), "os", curves.items(), strict=True):
    left.errorbar(sizes, values, [v.standard_error for v in values], label=name, color=color, marker=marker, capsize=3)
left.set(xlabel="documents with tags", ylabel="F₁ of 800 test documents (± s.e.)")
left.set_title("One model of sets against one per tag")
left.set_xticks(sizes)
left.legend()
image = right.imshow(together, cmap="PuOr", vmin=-0.6, vmax=0.6)
right.set_xticks(range(12), binarizer.classes_, rotation=60, ha="right")
right.set_yticks(range(12), binarizer.classes_)
right.set_title("Which tags occur together (correlation)")
figure.colorbar(image, ax=right, shrink=0.8)
plt.show()
