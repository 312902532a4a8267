import './gone.mjs';
