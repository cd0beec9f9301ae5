from sklearn.metrics import accuracy_score
import numpy

rng = numpy.random.default_rng(0)
probabilities = rng.random((32, 3))
labels = rng.integers(0, 3, 32)
print(accuracy_score(labels, probabilities))
