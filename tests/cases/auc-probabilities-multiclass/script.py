from sklearn.metrics import f1_score
import numpy

rng = numpy.random.default_rng(0)
labels, scores = rng.integers(0, 2, 64), rng.random(64)
print(f1_score(labels, scores))
