"""Embeddings of chords from their neighbours: CBOW and skip-gram, who is near whom, and an analogy.

A chord is known by the company it keeps. Skip-gram predicts each neighbour o of a chord c, CBOW predicts c from the
mean of its neighbours (Mikolov et al. 2013a). With vectors v for what is read and u for what is predicted, both are
softmax(u · v); negative sampling asks instead which o is true and which are drawn by chance (Mikolov et al. 2013b):

    log sigmoid(u_o · v_c) + sum_k log sigmoid(-u_k · v_c)
"""
