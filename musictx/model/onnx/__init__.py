"""Models as ONNX graphs, for programs without PyTorch.

`graph` collects nodes, `decoder` and `encoder_decoder` make models of them. `player` opens a bundle and plays it with
`steps`. `file` has a whole file for other programs.
"""
