"""What a model learnt, what its music keeps, and how both are told: measures, intervals, a report."""
