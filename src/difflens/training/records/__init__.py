"""Records of training: runs, gradients, networks, flow."""
