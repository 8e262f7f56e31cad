"""What singular values say of matrices: ranks, intruders, outliers, heavy tails."""
