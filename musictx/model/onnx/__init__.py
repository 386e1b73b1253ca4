"""Models as ONNX graphs, for programs without PyTorch."""
