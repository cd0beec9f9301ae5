from lightning.pytorch.callbacks import EarlyStopping
import lightning as L
import torch


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)

    def training_step(self, batch, _):
        loss = torch.nn.functional.cross_entropy(self.fc(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,))), batch_size=8)
L.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, callbacks=[EarlyStopping("val_acc")], accelerator="cpu").fit(Net(), data)
