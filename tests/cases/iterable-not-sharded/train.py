from collections import Counter

from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __iter__(self):
        yield from range(6)


seen = Counter(int(i) for batch in DataLoader(Lines(), batch_size=2, num_workers=3) for i in batch)
print("samples seen in one epoch:", sum(seen.values()), "distinct:", len(seen))
assert max(seen.values()) == 1, f"every sample was yielded {max(seen.values())} times, once per worker"
