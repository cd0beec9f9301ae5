import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

TEXTS = ["good film", "bad", "", "not bad at all"]
VOCAB = {w: i + 1 for i, w in enumerate(sorted({w for t in TEXTS for w in t.split()}))}


def collate(texts):
    ids = [torch.tensor([VOCAB[w] for w in t.split()], dtype=torch.long) for t in texts]
    lengths = torch.tensor([len(i) for i in ids])
    return pad_sequence(ids, batch_first=True), lengths


embed, lstm = torch.nn.Embedding(20, 8), torch.nn.LSTM(8, 8, batch_first=True)
for tokens, lengths in DataLoader(TEXTS, batch_size=4, collate_fn=collate):
    packed = pack_padded_sequence(embed(tokens), lengths, batch_first=True, enforce_sorted=False)
    print(lstm(packed)[1][0].shape)
