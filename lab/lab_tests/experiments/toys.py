"""Experiments that take no time, and parts that fail."""

from psilearn_lab.experiments import Experiment, Metric, Outcome, Part, Row

LOSS = Metric("loss", "lower", 3)
F1 = Metric("F1 (%)", "higher", 1)


class Counted:
    """The function of a part that counts its calls; its value depends on the seed and the size only."""

    def __init__(self):
        self.calls = 0

    def __call__(self, context):
        self.calls += 1
        context.log("thinking")
        value = context.config["n"] + context.seed / 10
        return Outcome([Row("Toy", "OEL", LOSS, value, 0.5, paper=1000.0, parameters={"alpha": 1e-4})], ["a note"])


def part(run, name="toy", **config):
    return Part(name, f"Part {name}", run, {"n": 100, **config}, {"n": 5})


def experiment(*parts, name="toys"):
    return Experiment(name, f"Experiment {name}", "Table 7", "First this.\n\nThen that.", parts)


def missing_data(context):
    raise FileNotFoundError("toy.arff is missing. Get it from https://example.org/toy.arff.")


def failing(context):
    raise IndexError("index 3 is out of range")
