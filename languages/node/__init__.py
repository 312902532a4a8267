"""Node.js: code shared by JavaScript and TypeScript. Both have the same plans and share images."""
