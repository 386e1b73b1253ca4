"""Models as ONNX graphs, for programs without PyTorch.

`graph` collects nodes, `decoder` and `encoder_decoder` make models of them. `opening` opens a bundle, `player` and
`source_player` play it with `steps`. `write` and `read` have a whole file for other programs.
"""
