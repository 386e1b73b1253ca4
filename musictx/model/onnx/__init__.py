"""Models as ONNX graphs, for programs without PyTorch.

`graph` collects nodes, `decoder` makes a Transformer of them. `player` opens a bundle, `steps` plays it. `write` and
`read` have a whole file for other programs.
"""
