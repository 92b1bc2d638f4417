"""The memory of held batches: what keeps it, what is made over it, and when it goes back."""
