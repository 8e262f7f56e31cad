"""What can be wrong with a loop beside its gradients: who writes weights, how often it steps."""
