"""What the ONNX reader is made of: the graph, its nodes and its tensors."""
