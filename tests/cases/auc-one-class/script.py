from sklearn.metrics import roc_auc_score
import numpy

rng = numpy.random.default_rng(0)
scores = rng.random(64)
labels = numpy.zeros(64, dtype=int)
labels[40] = 1
values = [roc_auc_score(labels[i : i + 16], scores[i : i + 16]) for i in range(0, 64, 16)]
print(sum(values) / len(values))
