"""Accuracy of the statement judge against annotators' labels, and the fit of its calibrated model."""
