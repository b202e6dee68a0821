"""What several families of kernels need: random streams, logistic regression, weighted quantiles."""
