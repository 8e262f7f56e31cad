"""Watch a Lightning Trainer: `python examples/training/watch_lightning.py RUN`."""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer

import difflens


class Classifier(LightningModule):
    """Two layers."""

    def __init__(self) -> None:
        """Make them."""
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2)
        )

    def training_step(self, batch, _index):  # noqa: ANN001, ANN201
        """Return the loss of a batch."""
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):  # noqa: ANN201
        """Train everything."""
        return torch.optim.Adam(self.parameters(), 1e-2)


torch.manual_seed(0)
inputs = torch.randn(512, 16)
data = torch.utils.data.TensorDataset(inputs, (inputs.sum(dim=1) > 0).long())
trainer = Trainer(
    max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
    callbacks=[difflens.lightning_callback(sys.argv[1], every=1)],
)  # fmt: skip
trainer.fit(Classifier(), torch.utils.data.DataLoader(data, batch_size=64))
