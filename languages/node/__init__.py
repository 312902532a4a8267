"""Node.js: what JavaScript and TypeScript have in common. A plan for TypeScript is one for JavaScript, in the same boxes."""
