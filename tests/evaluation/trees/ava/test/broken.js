import './gone.js';
