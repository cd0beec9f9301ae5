import lightning as L
import torch


class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.g, self.d = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        return self.d(self.g(batch[0])).mean()

    def configure_optimizers(self):
        return [torch.optim.Adam(self.g.parameters()), torch.optim.Adam(self.d.parameters())], []


data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 4)), batch_size=8)
L.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu").fit(Gan(), data)
