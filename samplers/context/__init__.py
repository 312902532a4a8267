"""Context rules: how the history of a conversation is cleared when it fills the model's window."""
