"""Models as ONNX graphs, for programs without PyTorch.

`graph` collects nodes, `decoder` makes a Transformer of them, `write` and `read` have the file, `steps` plays it.
"""
