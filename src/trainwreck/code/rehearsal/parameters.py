"""Which parameters layers of ``torch.nn`` make themselves; those without are listed with none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainwreck.code.rehearsal.domain import Obj, Value
from trainwreck.code.shapes.domain import ANY, Dim, Shape

_PAIR = ("weight", "bias")
_RECURRENT = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
PARAMETERS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        """Linear LazyLinear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d
        LazyConv1d LazyConv2d BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LayerNorm GroupNorm
        LazyBatchNorm1d LazyBatchNorm2d""".split(),
        _PAIR,
    ),
    **dict.fromkeys(("Embedding", "EmbeddingBag", "RMSNorm", "PReLU"), ("weight",)),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _RECURRENT),
    **dict.fromkeys(("LSTMCell", "GRUCell", "RNNCell"), ("weight_ih", "weight_hh", "bias_ih", "bias_hh")),
    "MultiheadAttention": ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"),
    **dict.fromkeys(
        """TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder
        Transformer""".split(),
        ("self_attn.in_proj_weight", "linear1.weight", "linear2.weight", "norm1.weight"),
    ),
    **dict.fromkeys(
        """ReLU ReLU6 GELU SiLU ELU SELU CELU Mish Tanh Sigmoid Softmax LogSoftmax Softplus Hardtanh Hardswish
        LeakyReLU Hardsigmoid Dropout Dropout1d Dropout2d Dropout3d AlphaDropout Identity Softsign LogSigmoid
        Flatten Unflatten MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d
        AdaptiveAvgPool2d AdaptiveMaxPool1d AdaptiveMaxPool2d Upsample UpsamplingNearest2d UpsamplingBilinear2d
        PixelShuffle ZeroPad2d ReflectionPad1d ReflectionPad2d ReplicationPad2d ConstantPad1d InstanceNorm1d
        InstanceNorm2d CosineSimilarity CrossEntropyLoss NLLLoss BCELoss BCEWithLogitsLoss MSELoss L1Loss
        SmoothL1Loss HuberLoss KLDivLoss GaussianNLLLoss PoissonNLLLoss CTCLoss TripletMarginLoss
        MarginRankingLoss CosineEmbeddingLoss Threshold GLU Softmin Module""".split(),
        (),
    ),
}  # fmt: skip


def shape_of_own(layer: Obj, name: str) -> Shape:
    """The shape of a parameter that a layer of torch makes itself, as far as its arguments are known."""
    kind = layer.name
    if kind == "Linear":
        sizes: list[Value] = [layer.get("out_features", 1), layer.get("in_features", 0)]
    elif kind in ("Conv1d", "Conv2d", "Conv3d"):
        axes = int(kind[4])
        size = layer.get("kernel_size", 2)
        kernel = list(size) if isinstance(size, tuple) and len(size) == axes else [size] * axes
        channels, groups = layer.get("in_channels", 0), layer.get("groups", 6, 1)
        known = isinstance(channels, int) and isinstance(groups, int) and groups > 0
        sizes = [layer.get("out_channels", 1), channels // groups if known else None, *kernel]
    elif kind in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"):
        sizes = [layer.get("num_features", 0)]
    elif kind == "LayerNorm" and isinstance(layer.get("normalized_shape", 0), int):
        sizes = [layer.get("normalized_shape", 0)]
    elif kind in ("GroupNorm", "InstanceNorm1d", "InstanceNorm2d"):
        sizes = [layer.get("num_channels", 1) if kind == "GroupNorm" else layer.get("num_features", 0)]
    elif kind in _GATES and layer.get("proj_size", 8, 0) in (0, None):
        return _of_recurrent(layer, name)
    elif kind in ("Embedding", "EmbeddingBag"):
        sizes = [layer.get("num_embeddings", 0), layer.get("embedding_dim", 1)]
    elif kind == "MultiheadAttention":
        width = layer.get("embed_dim", 0)
        rows = 3 * width if name.startswith("in_proj") and isinstance(width, int) else width
        sizes = [rows] if name.endswith("bias") else [rows, width]
    else:
        return ANY
    dims: list[Dim] = [s if isinstance(s, int) and not isinstance(s, bool) else None for s in sizes]
    return Shape(tuple(dims[:1] if name == "bias" else dims))


_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1, "LSTMCell": 4, "GRUCell": 3, "RNNCell": 1}
"""How many blocks of rows the weights of a recurrent layer have, one for each gate."""


def _of_recurrent(layer: Obj, name: str) -> Shape:
    inputs, hidden = layer.get("input_size", 0), layer.get("hidden_size", 1)
    rows = _GATES[layer.name] * hidden if isinstance(hidden, int) else None
    if name.startswith("bias"):
        return Shape((rows,))
    columns = hidden if "_hh" in name else inputs
    return Shape((rows, columns if isinstance(columns, int) else None))
