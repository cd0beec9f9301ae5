from lightning.pytorch.callbacks import ModelCheckpoint
import lightning as L
import torch


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.fc(batch[0]), batch[1])

    def validation_step(self, batch, _):
        self.log("valid_loss", torch.nn.functional.cross_entropy(self.fc(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,))), batch_size=8)
trainer = L.Trainer(max_epochs=1, logger=False, enable_progress_bar=False, callbacks=[ModelCheckpoint(monitor="val/loss")], accelerator="cpu")
trainer.fit(Net(), data, data)
