"""From answers to conversations that are worth training on: `steps.STEPS` is the whole policy, in order."""
