"""Fitting a model to a store: LightningModule, callbacks, schedule."""
