"""Node.js: what JavaScript and TypeScript have in common. Plans of both are alike, in the same boxes."""
