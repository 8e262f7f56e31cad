"""Layers as kernels over residual dimensions, and how alike all of them are at once.

A matrix W that reads from or writes to the residual stream gives each residual dimension a vector
of its weights; the Gram matrix of these is the same whatever order the layer's own units are in.
Unbiased CKA (Song et al. 2012; Kornblith et al. 2019) is then the cosine of U-centred Gram
matrices (Szekely and Rizzo 2014): all layers against all is one matrix product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocols import Values

if TYPE_CHECKING:
    from numpy.typing import NDArray


def gram(values: Values, axis: int, dimensions: NDArray[Any]) -> NDArray[Any]:
    """Multiply the chosen residual dimensions' vectors with each other, block by block.

    `axis` is where the residual dimensions lie in the matrix.
    """
    import numpy as np

    total = np.zeros((len(dimensions), len(dimensions)))
    with np.errstate(invalid="ignore", over="ignore"):
        if axis == 0:
            rows = values.some_rows([int(each) for each in dimensions])
            total += rows @ rows.T
            return total
        for block in values.rows():
            part = block[:, dimensions]
            total += part.T @ part
    return total


def u_centred(kernel: NDArray[Any]) -> NDArray[Any] | None:
    """Centre a Gram matrix so that products with others are unbiased, and scale it to length one.

    k_ij - Σ_l k_il/(n - 2) - Σ_l k_lj/(n - 2) + Σ k/((n - 1)(n - 2)) off the diagonal, 0 on it.
    None where nothing varies, a value is not finite, or below four dimensions.
    """
    import numpy as np

    n = len(kernel)
    if n < 4 or not np.isfinite(kernel).all():
        return None
    scale = np.abs(kernel).max()
    if not scale:
        return None
    bare = kernel / scale
    np.fill_diagonal(bare, 0)
    sums = bare.sum(axis=0)
    centred = bare - (sums[:, None] + sums[None, :]) / (n - 2) + sums.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(centred, 0)
    length = float(np.linalg.norm(centred))
    if length <= 1e-12 * n:
        return None
    return np.asarray(centred / length, np.float32).ravel()


def cosines(rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[Any]:
    """Give the unbiased CKA of every row kernel with every column kernel."""
    import numpy as np

    return np.clip(np.asarray(rows @ columns.T, np.float64), -1.0, 1.0)


def permuted(kernels: NDArray[Any], order: NDArray[Any]) -> NDArray[Any]:
    """Re-order the dimensions of every kernel: what is left alike then is chance."""
    import numpy as np

    n = len(order)
    square = kernels.reshape(-1, n, n)
    return np.ascontiguousarray(square[:, order][:, :, order]).reshape(len(kernels), -1)
