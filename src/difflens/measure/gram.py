"""Singular values by way of the smaller Gram matrix: half the work of a decomposition, streamed.

Squared singular values are the eigenvalues of MᵀM (or MMᵀ), which chunks add up to, so that a
matrix of 128k x 2048 takes 32 MB. The price: eigenvalues are good to epsilon times the largest, so
that singular values below `floor` of the largest are noise. Chunks of 16-bit elements are
multiplied in float32 and summed in float64. A GPU does it where torch is already at work on one.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOOR = 5e-7  # relative to the largest singular value: sqrt(n epsilon) of float64
ROUGH_FLOOR = 2e-4  # the same where chunks were multiplied in float32


class Gram:
    """The Gram matrix of what was added; memory: two matrices of `size`² float64."""

    def __init__(self, size: int, *, tall: bool, precise: bool) -> None:
        """Begin with zeros."""
        import numpy as np

        self.tall = tall
        self.floor = FLOOR if precise else ROUGH_FLOOR
        self._type = np.float64 if precise else np.float32
        self._torch = accelerator()
        self.matrix: Any = (
            self._torch.zeros((size, size), dtype=self._torch.float64, device="cuda")
            if self._torch
            else np.zeros((size, size))
        )

    def add(self, chunk: NDArray[Any]) -> None:
        """Add rows of a tall matrix, or columns of a wide one."""
        import numpy as np

        part: Any = np.ascontiguousarray(chunk, self._type)
        if self._torch:
            part = self._torch.from_numpy(part).cuda().double()
        with np.errstate(over="ignore", invalid="ignore"):  # the caller sees that it is not finite
            self.matrix += part.T @ part if self.tall else part @ part.T

    def copy(self) -> Gram:
        """Give one that goes on from here."""
        twin = object.__new__(Gram)
        twin.__dict__.update(self.__dict__)
        twin.matrix = self.matrix.clone() if self._torch else self.matrix.copy()
        return twin

    @property
    def square_sum(self) -> float:
        """Sum of the squares of what was added."""
        return float(self.matrix.trace())

    def values(self) -> NDArray[Any]:
        """Give all singular values, the largest first."""
        import numpy as np

        if self._torch:
            found = self._torch.linalg.eigvalsh(self.matrix).cpu().numpy()
        else:
            found = np.linalg.eigvalsh(self.matrix)
        return _roots(found)

    def leading(self, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give all singular values, and the vectors of the first `count`, by columns."""
        return _leading(self._host(), count)

    def all_vectors(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give all singular values and vectors, the largest first."""
        import numpy as np

        found, vectors = np.linalg.eigh(self._host())
        return _roots(found), vectors[:, ::-1]

    def is_finite(self) -> bool:
        """Did every square fit into a float64?"""
        import numpy as np

        return bool(np.isfinite(self._host().diagonal()).all())

    def _host(self) -> NDArray[Any]:
        return self.matrix.cpu().numpy() if self._torch else self.matrix  # type: ignore[no-any-return]


def accelerator() -> Any:
    """Give torch where somebody has imported it already and it has a GPU; it is never imported."""
    torch = sys.modules.get("torch")
    try:
        return torch if torch is not None and torch.cuda.is_available() else None
    except (AttributeError, RuntimeError):  # half imported, or its driver does not answer
        return None


def _roots(eigenvalues: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.asarray(np.sqrt(np.maximum(eigenvalues[::-1], 0.0)))


def _leading(matrix: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Make it tridiagonal once, for all its eigenvalues and some of its vectors.

    Q T Qᵀ = G; Q is kept as reflections in the columns below the diagonal (LAPACK's dsytrd).
    """
    import numpy as np
    from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal, lapack

    size = len(matrix)
    work = int(lapack.dsytrd_lwork(size, lower=1)[0])
    reduced, diagonal, beside, tau, _ = lapack.dsytrd(matrix, lower=1, lwork=work)
    values = _roots(eigvalsh_tridiagonal(diagonal, beside))
    first = max(0, size - count)
    _, inner = eigh_tridiagonal(diagonal, beside, select="i", select_range=(first, size - 1))
    vectors = np.asfortranarray(inner)
    reflections = np.asfortranarray(reduced[1:, : size - 1])
    vectors[1:], _, _ = lapack.dormqr("L", "N", reflections, tau, vectors[1:], 64 * size)
    return values, vectors[:, ::-1]
