"""What is done to models: one function per edit, each of which says what an answer should name."""

from .beside import add, advance_state, configure, remove, rename, reshape, retoken
from .folds import fold_batch_norm, fold_norm, fold_weight_norm, split_weight_norm
from .low_rank import abliterate, lora, merge, outer_product
from .merges import average, combine, dare, ema, merged_pair, near, slerp, task_arithmetic, ties
from .order import exchange, permute, permute_inconsistently, rescale_channels, rotate, transpose
from .storage import SCHEMES, cast, palette, quantise, through
from .structure import prune_units, relayer, replace_head, resize_vocabulary
from .values import (
    about,
    add_noise,
    chosen,
    corrupt,
    edit_elements,
    edit_rows,
    flip_sign,
    flip_zeros,
    prune,
    reinitialise,
    scale,
    zero,
)

__all__ = [
    "SCHEMES", "abliterate", "about", "add", "add_noise", "advance_state", "average", "cast",
    "chosen", "combine", "configure", "corrupt", "dare", "edit_elements", "edit_rows", "ema",
    "exchange", "flip_sign", "flip_zeros", "fold_batch_norm", "fold_norm", "fold_weight_norm",
    "lora", "merge", "merged_pair", "near", "outer_product", "palette", "permute",
    "permute_inconsistently", "prune", "prune_units", "quantise", "reinitialise", "relayer",
    "remove", "rename", "replace_head", "rescale_channels", "reshape", "resize_vocabulary",
    "retoken", "rotate", "scale", "slerp", "split_weight_norm", "task_arithmetic", "through",
    "ties", "transpose", "zero",
]  # fmt: skip
