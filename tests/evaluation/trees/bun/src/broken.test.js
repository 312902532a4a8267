import { describe, expect, it, test } from 'bun:test';
import gone from './gone.js';
test('never', () => gone());
